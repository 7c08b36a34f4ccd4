"""Write the examples of the document; `python -m tests.studio.api` runs this."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.http import HttpResponse

from tests.docs.made.openapi import document
from tests.studio.api.conftest import Program
from tests.studio.api.problem_tour import Refusals, refusals
from tests.studio.api.shown import shown
from tests.studio.api.tour import CALLS, Call

__all__ = ["refusals"]  # a fixture


def test_record(maria: Program, visit: Callable[[Program, Call], HttpResponse], refusals: Refusals) -> None:
    found: dict[str, Any] = {}
    for call in CALLS:
        answer = visit(maria, call)
        assert answer.status_code == call.status, answer.content
        asked = {} if call.body is None else {"request": call.body}
        found[call.operation] = asked | {"answer": shown(answer.content.decode())}
    found["problems"] = {str(status): shown(answer.content.decode()) for status, answer in refusals().items()}
    document.EXAMPLES.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    document.FILE.write_text(document.text())
