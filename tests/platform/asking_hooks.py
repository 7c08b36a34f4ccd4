"""What Schemathesis cannot know: a key that has been used stands for the request that it was first sent with."""

from __future__ import annotations

import re
import uuid
from typing import Any

import schemathesis

VALID = re.compile(r"[ -+\--~]{1,255}")


@schemathesis.hook  # type: ignore[untyped-decorator]
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and VALID.fullmatch(key) and key.strip():
        case.headers["Idempotency-Key"] = uuid.uuid4().hex
