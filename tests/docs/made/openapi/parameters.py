"""The parameters of operations: those in the path by their converters, and the headers that many take."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from studio.api.fields import INSTANCE_ID, WORKFLOW_NAME
from studio.frame.addresses import Fingerprint, WorkerName

KEY = r"^[!-+\--~]([ -+\--~]*[!-+\--~])?$"  # ASCII without commas

SHARED: dict[str, Any] = {
    "WorkflowName": {
        "name": "name",
        "in": "path",
        "required": True,
        "description": "The name of a workflow.",
        "schema": {"type": "string", "pattern": WORKFLOW_NAME},
        "example": "ship-order",
    },
    "InstanceId": {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "The id of an instance.",
        "schema": {"type": "string", "pattern": INSTANCE_ID},
        "example": "order-1042",
    },
    "StepNumber": {
        "name": "seq",
        "in": "path",
        "required": True,
        "description": "The number of a step: its `seq`.",
        "schema": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
        "example": 1,
    },
    "ScheduleName": {
        "name": "schedule",
        "in": "path",
        "required": True,
        "description": "The name of a schedule, percent-encoded. Without a name of its own, it is its expression.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 100},
        "example": "weekly",
    },
    "Fingerprint": {
        "name": "fingerprint",
        "in": "path",
        "required": True,
        "description": "What identifies a group of errors.",
        "schema": {"type": "string", "pattern": f"^{Fingerprint.regex}$"},
        "example": "0f1e2d3c4b5a6978",
    },
    "WorkerName": {
        "name": "worker",
        "in": "path",
        "required": True,
        "description": "The name of a worker or a cluster: its host and process id.",
        "schema": {"type": "string", "pattern": f"^{WorkerName.regex}$"},
        "example": "web-1:4711",
    },
    "JobId": {
        "name": "job",
        "in": "path",
        "required": True,
        "description": "The id of a bulk job.",
        "schema": {"type": "string", "pattern": INSTANCE_ID},
        "example": "019ab4f0-5b1e-7c60-9e3f-5d2a8f0c7b11",
    },
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "ASCII without commas, new for each thing to do. For a day, a repeated request with this key "
        "has no effect and gets the first answer; another request with it gets 422.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": KEY},
    },
    "IfMatch": {
        "name": "If-Match",
        "in": "header",
        "required": False,
        "description": "The ETag of the state that the action is meant for. 412 if the instance has changed since.",
        "schema": {"type": "string"},
    },
}
BY_CONVERTER = {
    "workflow": "WorkflowName",
    "id": "InstanceId",
    "step": "StepNumber",
    "path": "ScheduleName",
    "fingerprint": "Fingerprint",
    "worker": "WorkerName",
    "job": "JobId",
}
# What a `slug` stands for, by operation.
CHOICES = {
    "read_payload": ("Which value.", ["params", "output", "error"]),
    "read_step_payload": ("Which value.", ["output", "error"]),
}

_PART = re.compile(r"<(\w+):(\w+)>")


def template(route: str) -> str:
    """Return the path of a route as documents write it."""
    return "/" + _PART.sub(r"{\2}", route)


def complete(found: Sequence[Any], route: str, operation: str) -> list[Any]:
    """Return the parameters of an operation: path, query, headers."""
    queries = [_query(one) for one in found if one.get("in") == "query"]
    shared = [one for one in found if "$ref" in one]
    return [*_of_path(route, operation), *queries, *shared]


def _of_path(route: str, operation: str) -> Iterator[Any]:
    for converter, name in _PART.findall(route):
        if converter in BY_CONVERTER:
            yield {"$ref": f"#/components/parameters/{BY_CONVERTER[converter]}"}
            continue
        about, values = CHOICES[operation]
        schema = {"type": "string", "enum": values}
        yield {"name": name, "in": "path", "required": True, "description": about, "schema": schema}


def _query(one: Any) -> Any:
    schema = {**one["schema"]}
    # An address cannot hold null: leaving the parameter out stands for it.
    kinds = [kind for kind in schema.pop("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        schema |= kinds[0]
    elif kinds:
        schema["anyOf"] = kinds
    about = schema.pop("description", "") or one["description"]
    return {
        "name": one["name"],
        "in": "query",
        "required": one["required"],
        "description": about,
        "schema": schema,
    }
