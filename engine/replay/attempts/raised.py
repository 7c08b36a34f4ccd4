"""The error of a body, made again from its record for a delay function in another process."""

from __future__ import annotations

import json
import sys
from typing import Any

from engine.values.errors import StepError

KEY = "class"  # in addition to what is recorded of every error


def with_class(text: str, error: BaseException) -> str:
    """Add the class of an error to its record (JSON text)."""
    kind = type(error)
    return json.dumps({**json.loads(text), KEY: [str(kind.__module__), str(kind.__qualname__)]})


def again(text: str | None, label: str) -> BaseException:
    """Return an error of the class that was raised, with its message and its JSON attributes.

    If the code no longer has that class, or it cannot be made this way, return a StepError with the same facts.
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
    found: Any = sys.modules[module]  # nothing is imported for this
    for part in name.split("."):
        found = getattr(found, part)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        return None
    error = found.__new__(found)  # its own __init__ may want other arguments
    error.args = (message,)
    vars(error).update(details)
    return error
