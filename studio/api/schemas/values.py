"""What many answers have: values of workflows, errors, retention, cursors."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import Field, Schema
from pydantic import WithJsonSchema

AnyJson = Annotated[Any, WithJsonSchema({"description": "Any JSON value."})]


JsonSchema = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "description": "A JSON Schema (draft 2020-12)."})
]


Cursor = Annotated[str | None, Field(description="The `cursor` of the next page; null on the last one.")]


class Kept(Schema):
    """How long instances are kept after their end, in seconds by final status; null means forever."""

    complete: float | None
    errored: float | None
    terminated: float | None


class RecordedError(Schema):
    """An error as it was recorded. With `full`, everything that was recorded of it."""

    type: str | None = Field(description="The name of its class.")
    message: str | None
    details: AnyJson = Field(None, description="With `full`: what its code attached to it.")
    traceback: str | None = Field(None, description="With `full`.")
