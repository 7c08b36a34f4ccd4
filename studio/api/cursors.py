"""Cursors of lists: where the page before has ended, as text that clients bring back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from ninja import Field
from pydantic import AfterValidator

NO_CURSOR = "This is not a cursor. Pass the next_cursor of the page before."
_BYTE = "(?:0[1-9a-f]|[1-9a-f][0-9a-f])"  # any but NUL, which PostgreSQL refuses


def name_cursor(workflow: str, name: str) -> str:
    """Return the cursor of a place in a list in the order of workflows and names."""
    return f"{workflow.encode().hex()}.{name.encode().hex()}"


def named(cursor: str) -> tuple[str, str]:
    """Return the workflow and the name in such a cursor."""
    workflow, name = (bytes.fromhex(part).decode(errors="replace") for part in cursor.split("."))
    return workflow, name


def _cursor(pattern: str) -> Any:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(NO_CURSOR)
        return text

    about = "The `next_cursor` of the page before."
    return Annotated[
        str,
        AfterValidator(check),
        Field(
            description=about,
            json_schema_extra={"pattern": f"^({pattern})$" if "|" in pattern else f"^{pattern}$"},
        ),
    ]


if TYPE_CHECKING:
    Cursor = str
    GroupCursor = str
    InOrder = str
    JobCursor = str
    Place = str
    Named = str
else:
    Cursor = _cursor("[0-9]{1,18}")
    GroupCursor = _cursor("[0-9]{1,16}-[0-9a-f]{16}")
    InOrder = _cursor(r"w?[0-9]{1,18}|-?[0-9]{1,18}(\.[0-9]{1,18}){4}")
    JobCursor = _cursor("[A-Za-z0-9_-]{1,100}")
    Place = _cursor(r"[0-9]{1,18}\.[0-9]{1,9}\.[0-9]{1,9}")
    Named = _cursor(rf"{_BYTE}{{1,256}}\.{_BYTE}{{1,400}}")
