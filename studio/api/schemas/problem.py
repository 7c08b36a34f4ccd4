"""A refusal."""

from __future__ import annotations

from ninja import Field, Schema


class WrongField(Schema):
    """One thing that is wrong with a request."""

    path: str = Field(
        description="Where: a path into the body, such as params/items/0/qty, or the name of a parameter, "
        "with a ? before it if the body has a field of that name."
    )
    code: str = Field(description="Which rule it breaks.")
    message: str = Field(description="The rule, as a sentence.")


class Problem(Schema):
    """Why a request is refused (RFC 9457)."""

    type: str = Field(
        description="The same for all problems of a kind: urn:reprise:problem: and the code.",
        examples=["urn:reprise:problem:instance_finished"],
    )
    title: str = Field(description="The phrase of the status.")
    status: int = Field(description="The status of the answer.")
    code: str = Field(description="The same as the end of `type`, for programs.")
    detail: str = Field(description="A sentence for people: what is wrong, and what to do.")
    errors: list[WrongField] = Field([], description="The wrong fields, if there are any.")
    value: int = Field(0, description="With the code limit: how much it is.")
    limit: int = Field(0, description="With the code limit: how much it may be.")
    place: str = Field(
        "", description="Of a value that cannot be read or stored: where in it, such as $.items[0].qty."
    )
    line: int = Field(0, description="With the code invalid_json: the line, from 1.")
    column: int = Field(0, description="With the code invalid_json: the column, from 1.")
