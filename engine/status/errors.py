"""A recorded error in short form."""

from __future__ import annotations

import json


def error_line(error: object, length: int = 160) -> str:
    """Return class and message of a recorded error on one line."""
    if not isinstance(error, dict):
        return ""
    message = " ".join(str(error.get("message") or "").split())
    text = f"{error.get('type') or 'Error'}: {message}" if message else str(error.get("type") or "")
    return text if len(text) <= length else text[: length - 1] + "…"


def beginning_of_error(text: str | None) -> dict[str, object] | None:
    """Return type and message of an error of which only the beginning was fetched."""
    if not text:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        found = {
            name: part.split('"', 1)[0]
            for name in ("type", "message")
            for part in [_after(text, f'"{name}":')]
            if part
        }
        return dict(found) or None
    return value if isinstance(value, dict) else None


def _after(text: str, mark: str) -> str:
    _, found, rest = text.partition(mark)
    return rest.lstrip().removeprefix('"')[:300] if found else ""
