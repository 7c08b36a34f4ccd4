"""What a body raised, for a delay function that is asked about it in another process: made again from the record."""

from __future__ import annotations

import json
import sys
from typing import Any

from engine.values.errors import StepError

KEY = "class"  # beside what is recorded of an error


def with_class(text: str, error: BaseException) -> str:
    """Let the recorded error (JSON text) also say which class it is of."""
    kind = type(error)
    return json.dumps({**json.loads(text), KEY: [str(kind.__module__), str(kind.__qualname__)]})


def again(text: str | None, label: str) -> BaseException:
    """Return an error of the class that was raised, with its text and those attributes that JSON holds.

    Where the code has no such class any more, or it cannot be made so, a StepError with the same facts.
    """
    kept = json.loads(text or "{}")
    message, details = kept.get("message", ""), kept.get("details") or {}
    try:
        error = _make(kept.get(KEY), message, details)
    except Exception:  # noqa: BLE001 - the classes are the user's
        error = None
    return error or StepError(label, kept.get("type", "Error"), message, kept.get("attempts", 1), details)


def _make(where: Any, message: str, details: dict[str, Any]) -> BaseException | None:
    if not where:
        return None
    module, name = where
    found: Any = sys.modules[module]  # nothing is imported for it
    for part in name.split("."):
        found = getattr(found, part)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        return None
    error = found.__new__(found)  # its own __init__ may want other arguments
    error.args = (message,)
    vars(error).update(details)
    return error
