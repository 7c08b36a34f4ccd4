"""What many answers have: values of workflows, and errors."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

JSON = Any
"""A value of your workflow's: params, an output, a payload."""


class RecordedError(TypedDict):
    """An error as it was recorded; with `full` also its traceback and details."""

    type: str | None
    message: str | None
    traceback: NotRequired[str | None]
    details: NotRequired[JSON]
