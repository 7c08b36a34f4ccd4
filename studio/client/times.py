"""Read the times of an answer. Values of workflows are left as they are, even if they look like times."""

from __future__ import annotations

from datetime import datetime
from typing import Any

# Keys of values that are not the Studio's own.
FOREIGN = frozenset(
    (
        "params",
        "params_schema",
        "schema",
        "output",
        "payload",
        "data",
        "fields",
        "error",
        "pause_reason",
        "retention",
    )
)
TIMES = frozenset(("at", "now", "upcoming", "first_seen", "last_seen", "ignored_until", "since"))


def read_times(answer: Any) -> Any:
    """Return a copy with the times as datetimes."""
    if isinstance(answer, list):
        return [read_times(one) for one in answer]
    if not isinstance(answer, dict):
        return answer
    return {key: _read(key, value) for key, value in answer.items()}


def _read(key: str, value: Any) -> Any:
    if key in FOREIGN:
        return value
    return _moment(value) if key in TIMES or key.endswith("_at") else read_times(value)


def _moment(value: Any) -> Any:
    if isinstance(value, list):
        return [_moment(one) for one in value]
    return datetime.fromisoformat(value) if isinstance(value, str) else value
