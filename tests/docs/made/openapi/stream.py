"""The operation that ninja does not know: server-sent events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ninja.openapi.schema import REF_TEMPLATE
from ninja.schema import NinjaGenerateJsonSchema
from pydantic.json_schema import models_json_schema

from engine.status.changes import Kind
from studio.access.permissions import Verb
from studio.api.operation import Declared
from studio.api.site import STREAM
from studio.api.stream import frames
from studio.api.stream.schemas import SHAPES
from tests.docs.made.openapi import headers, parameters, problems

NAME = "subscribe"
DECLARED = Declared(STREAM, "GET", Verb.VIEW, "")
PATH = parameters.template(STREAM)
REFUSALS = (401, 403, 404, 422, 429, 503)
ABOUT = """\
Server-sent events: first what is recorded, then each change as it is committed, exactly once and in the order of its
time, until the instance ends. `event` is the kind of change, `data` what it is about as it is now, and `id` a cursor.
After an interruption, come again with the last `id` as `Last-Event-ID`, which browsers do by themselves.

The last event is `end`. With the cursor of an `end`, the answer is 204 as long as nothing follows, after a restart
what follows. An event `error` says why the stream ends before: its data is a problem. Lines that begin with a colon are
sent every 15 seconds; ignore them.

{events}

Needs the verb `view`."""
CURSOR = "MS4xMDQxLjc1MDIsMC4tLi0uLS4w"


def schemas() -> dict[str, Any]:
    """Return the schemas of what events hold."""
    models = [(shape, "serialization") for shape in SHAPES.values()]
    _, found = models_json_schema(
        models,  # type: ignore[arg-type]
        ref_template=REF_TEMPLATE,
        schema_generator=NinjaGenerateJsonSchema,
    )
    return dict(found["$defs"])


def operation(examples: Mapping[str, Any]) -> dict[str, Any]:
    """Return the operation."""
    refusals = {str(one): {"$ref": f"#/components/responses/{problems.name_of(one)}"} for one in REFUSALS}
    return {
        "operationId": NAME,
        "tags": ["History"],
        "summary": "Follow an instance",
        "description": _about(),
        "x-reprise-verb": str(DECLARED.verb),
        "parameters": [
            *parameters.complete([], STREAM, NAME),
            _query(
                "types",
                f"Only these kinds of changes, with commas between: {', '.join(Kind)}.",
                "step,instance",
            ),
            _query(
                "cursor",
                "The `id` of the last event that you have, for clients that cannot send Last-Event-ID.",
            ),
            {
                "name": "Last-Event-ID",
                "in": "header",
                "required": False,
                "description": "The `id` of the last event that you have.",
                "schema": {"type": "string", "maxLength": 8000},
            },
        ],
        "responses": {
            "200": {
                "description": "OK",
                "headers": headers.ALWAYS,
                "content": {
                    "text/event-stream": {
                        "schema": {"type": "string"},
                        "x-reprise-events": {
                            kind: {"$ref": REF_TEMPLATE.format(model=name)} for kind, name in _named().items()
                        },
                        "example": _example(examples),
                    },
                },
            },
            "204": {"description": "Nothing follows the cursor.", "headers": headers.ALWAYS},
            **refusals,
        },
    }


def _about() -> str:
    lines = ["| `event` | `data` |", "| --- | --- |"]
    lines += [f"| `{kind}` | `{name}` |" for kind, name in _named().items()]
    parts = [part if part.startswith("{") else " ".join(part.split()) for part in ABOUT.split("\n\n")]
    return "\n\n".join(parts).format(events="\n".join(lines))


def _named() -> dict[str, str]:
    """Return the names of the schemas of data, by the type of the event."""
    return {str(kind): shape.__name__ for kind, shape in SHAPES.items()} | {"error": "Problem"}


def _query(name: str, about: str, example: str | None = None) -> dict[str, Any]:
    found = {
        "name": name,
        "in": "query",
        "required": False,
        "description": about,
        "schema": {"type": "string"},
    }
    return found if example is None else found | {"example": example}


def _example(examples: Mapping[str, Any]) -> str:
    """Return a stream of an instance that is complete, as the writer of streams writes it."""
    record = examples.get("read_instance", {}).get("answer")
    if record is None:
        return ""
    [step] = record["steps"][:1]
    shown = {name: step[name] for name in SHAPES[Kind.STEP].model_fields if name in step} | {"generation": 2}
    instance = {name: record["instance"][name] for name in SHAPES[Kind.INSTANCE].model_fields}
    end = {"status": instance["status"], "generation": instance["generation"], "is_deleted": False}
    events = [("step", shown), ("instance", instance), ("end", end)]
    frames_of = [frames.event(kind, json.loads(json.dumps(found)), CURSOR) for kind, found in events]
    return b"".join([frames.OPENING, *frames_of]).decode()
