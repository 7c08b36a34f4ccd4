"""What the document says of an answer, and whether it is so."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from typing import Any

from django.http import HttpResponse
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tests.docs.made.openapi.document import FILE, operations_of

_HERE = "urn:document"
_formats = FormatChecker(formats=())


@_formats.checks("date-time", raises=ValueError)
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


@cache
def document() -> Any:
    return json.loads(FILE.read_text())


def listed() -> list[tuple[str, str, Any]]:
    """Return path, method and operation of each operation."""
    return [*operations_of(document())]


@cache
def operations() -> dict[str, Any]:
    return {found["operationId"]: found for _, _, found in listed()}


def wrong(operation: str, answer: HttpResponse) -> list[str]:
    """Return what an answer has that the document does not say, or lacks."""
    status = str(answer.status_code)
    responses = operations()[operation]["responses"]
    if status not in responses:
        return [f"the status {status}"]
    response = resolved(responses[status])
    [(content_type, content)] = response["content"].items()
    found = [] if answer["Content-Type"] == content_type else [f"the type {answer['Content-Type']}"]
    return [
        *found,
        *_of_headers(response["headers"], answer),
        *invalid(content["schema"], json.loads(answer.content)),
    ]


def invalid(schema: Any, value: Any) -> list[str]:
    """Return where a value differs from a schema of the document; keys that the schema does not name are wrong."""
    validator = Draft202012Validator(_below(schema), registry=_strict(), format_checker=_formats)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def resolved(found: Any) -> Any:
    """Return what a reference refers to."""
    if "$ref" not in found:
        return found
    here = document()
    for part in found["$ref"].removeprefix("#/").split("/"):
        here = here[part]
    return here


def _of_headers(named: Any, answer: HttpResponse) -> list[str]:
    optional = {"Idempotency-Replayed"}
    ours = {"ETag", "Location", "Idempotency-Replayed", "RateLimit", "RateLimit-Policy", "Retry-After"}
    missing = [f"no header {name}" for name in named if name not in answer and name not in optional]
    unnamed = [f"the header {name}" for name in ours if name in answer and name not in named]
    bad = [
        f"{name}: {one}"
        for name in named
        if name in answer
        for one in invalid(resolved(named[name])["schema"], answer[name])
    ]
    return [*missing, *unnamed, *bad]


@cache
def _strict() -> Registry[Any]:
    """Return the document with schemas that allow no other keys."""
    text = json.loads(json.dumps(document()))
    for name, schema in text["components"]["schemas"].items():
        if "properties" in schema and name != "RecordedError":
            schema.setdefault("additionalProperties", False)
    resource = Resource.from_contents(_below(text), default_specification=DRAFT202012)
    return Registry().with_resource(_HERE, resource)


def _below(found: Any) -> Any:
    return json.loads(json.dumps(found).replace('"#/', f'"{_HERE}#/'))
