"""Cursors of lists: where the page before has ended, as text that clients bring back."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from ninja import Field
from pydantic import AfterValidator

NO_CURSOR = "This is not a cursor. Pass the next_cursor of the page before."
BETWEEN = "\n"  # no name of a workflow has it


def name_cursor(workflow: str, name: str) -> str:
    """Return the cursor of a place in a list in the order of workflows and names."""
    return urlsafe_b64encode(f"{workflow}{BETWEEN}{name}".encode()).decode().rstrip("=")


def named(cursor: str) -> tuple[str, str]:
    """Return the workflow and the name in such a cursor. Raises ValueError."""
    text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
    workflow, between, name = text.partition(BETWEEN)
    if not between or "\0" in text:
        raise ValueError(NO_CURSOR)
    return workflow, name


def _cursor(pattern: str, read: Callable[[str], object] = str) -> Any:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(NO_CURSOR)
        try:
            read(text)
        except ValueError:
            raise ValueError(NO_CURSOR) from None
        return text

    about = "The `next_cursor` of the page before."
    return Annotated[
        str, AfterValidator(check), Field(description=about, json_schema_extra={"pattern": f"^{pattern}$"})
    ]


if TYPE_CHECKING:
    Cursor = str
    Place = str
    Named = str
else:
    Cursor = _cursor("[0-9]{1,18}")
    Place = _cursor(r"[0-9]{1,18}\.[0-9]{1,9}\.[0-9]{1,9}")
    Named = _cursor("[A-Za-z0-9_-]{1,1000}", named)
