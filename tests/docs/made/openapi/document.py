"""Put the document together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from studio.access.permissions import Verb
from studio.api.operation import DECLARED, Declared
from studio.api.site import api
from tests.docs.made.openapi import headers, parameters, problems, schemas, stream
from tests.docs.pages import PROJECT

Json = dict[str, Any]

FILE = PROJECT / "studio" / "api" / "openapi.json"
EXAMPLES = PROJECT / "tests" / "docs" / "made" / "openapi" / "examples.json"
SECURITY = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token, from the page of tokens in the Studio: `rpr_` and 52 more characters.",
}


def text() -> str:
    """Return the file of the document."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def document() -> Json:
    """Return the document, with addresses below the prefix of the API."""
    made = json.loads(json.dumps(api.get_openapi_schema(path_prefix=""), default=str))
    examples = json.loads(EXAMPLES.read_text()) if EXAMPLES.exists() else {}
    paths = {**made["paths"]}
    for path, method, operation in operations_of(made):
        paths[path][method] = _operation(operation, declared_of(path, method), examples)
        if "requestBody" in operation:
            paths[path][method]["requestBody"]["required"] = _needs_body(operation, made)
    paths[stream.PATH] = {"get": stream.operation(examples)}
    components = {
        "schemas": {**made["components"]["schemas"], **stream.schemas()},
        "parameters": parameters.SHARED,
        "headers": headers.HEADERS,
        "responses": problems.responses(examples),
        "securitySchemes": {"Token": SECURITY},
    }
    whole = {
        "openapi": "3.1.0",
        "info": {**made["info"], "license": {"name": "MIT", "identifier": "MIT"}},
        "servers": [{"url": "/api/v1", "description": "Below the address of the Studio."}],
        "security": [{"Token": []}],
        "tags": made["tags"],
        "paths": dict(sorted(paths.items())),
        "components": components,
    }
    return schemas.plain(schemas.only_used(whole))


def operations_of(found: Json) -> Iterator[tuple[str, str, Json]]:
    """Yield path, method and operation of each operation in a document."""
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def declared_of(path: str, method: str) -> Declared:
    """Return what was declared for an operation of the document."""
    [found] = [
        one
        for one in (*DECLARED, stream.DECLARED)
        if (parameters.template(one.route), one.method.lower()) == (path, method)
    ]
    return found


def _operation(found: Json, declared: Declared, examples: Json) -> Json:
    name = found["operationId"]
    example = examples.get(name, {})
    return {
        "operationId": name,
        "tags": found["tags"],
        "summary": found["summary"],
        "description": f"{_unwrapped(found['description'])}\n\n{needs(declared)}",
        "x-reprise-verb": str(declared.asks or declared.verb),
        "parameters": parameters.complete(found["parameters"], declared.route, name),
        **({"requestBody": _body(found["requestBody"], example)} if "requestBody" in found else {}),
        "responses": dict(_responses(found["responses"], example)),
    }


def needs(declared: Declared) -> str:
    """Say what the holder of the token needs."""
    if declared.asks is None:
        return f"Needs the verb `{declared.verb}`."
    if declared.asks is Verb.OPERATE:
        return f"Needs the verb `{declared.asks}` for the workflow in the body."
    if declared.asks is Verb.ADMINISTER:
        return f"Needs the verb `{declared.verb}` in the scope of the token, and an owner who may `{declared.asks}`."
    return f"Needs the verb `{declared.asks}` in the scope of the token, and that the holder is asked."


def _unwrapped(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _body(found: Json, example: Json) -> Json:
    content = found["content"]["application/json"]
    given = {"example": example["request"]} if "request" in example else {}
    return {"required": True, "content": {"application/json": {**content, **given}}}


def _needs_body(operation: Json, made: Json) -> bool:
    """Tell whether an empty body lacks something."""
    reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    return bool(made["components"]["schemas"][reference.rpartition("/")[2]].get("required"))


def _responses(found: Json, example: Json) -> Iterator[tuple[str, Json]]:
    for status, response in sorted(found.items()):
        if status >= "400":
            yield status, {"$ref": f"#/components/responses/{problems.name_of(int(status))}"}
            continue
        content = response["content"]["application/json"]
        given = {"example": example["answer"]} if "answer" in example else {}
        yield (
            status,
            {
                "description": response["description"],
                "headers": {**response.get("headers", {}), **headers.ALWAYS},
                "content": {"application/json": {**content, **given}},
            },
        )
