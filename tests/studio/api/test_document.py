"""The document of the API: valid, complete, and the same wherever it is served."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator
from schemathesis.specs.openapi.definitions import OPENAPI_31

from studio.api.operation import DECLARED
from tests.docs.made.openapi import document, parameters, stream
from tests.studio.api import documented

DOCUMENT = documented.document()
OPERATIONS = [(path, method, found) for path, method, found in document.operations_of(DOCUMENT)]


def test_the_file_is_what_the_code_says() -> None:
    assert document.FILE.read_text() == document.text(), (
        "The API has changed: run python -m tests.studio.api, and look at the difference of studio/api/openapi.json. "
        "Clients break if a path, a key of an answer or a parameter is gone, or a new one is required."
    )


def test_it_is_valid() -> None:
    Draft202012Validator.check_schema(OPENAPI_31)
    assert [error.message for error in Draft202012Validator(OPENAPI_31).iter_errors(DOCUMENT)] == []


def test_its_schemas_are_valid() -> None:
    for schema in schemas_in(DOCUMENT):
        Draft202012Validator.check_schema(schema)
    for name in references_in(DOCUMENT):
        documented.resolved({"$ref": name})


def test_it_has_every_operation_once() -> None:
    found = sorted((path, method.upper()) for path, method, _ in OPERATIONS)
    assert found == sorted(
        (parameters.template(one.route), one.method) for one in (*DECLARED, stream.DECLARED)
    )
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(ids)) == len(ids)
    assert [name for name in ids if not re.fullmatch(r"[a-z]+(_[a-z]+){1,3}", name)] == [stream.NAME]


@pytest.mark.parametrize(
    ("path", "method", "operation"), OPERATIONS, ids=[one[2]["operationId"] for one in OPERATIONS]
)
def test_an_operation_says_everything(path: str, method: str, operation: Any) -> None:
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    assert set(operation["tags"]) <= tags
    assert operation["summary"]
    assert operation["description"].endswith(".")
    given = [documented.resolved(one) for one in operation["parameters"]]
    assert [one["name"] for one in given if not one["description"]] == []
    in_path = {one["name"] for one in given if one["in"] == "path"}
    assert in_path == set(re.findall(r"{(\w+)}", path))
    assert all(
        {"pattern", "enum", "maximum", "maxLength"} & one["schema"].keys()
        for one in given
        if one["in"] == "path"
    )
    assert ("Idempotency-Key" in [one["name"] for one in given]) == (method == "post")
    answers = [
        one["content"]
        for status, one in operation["responses"].items()
        if status < "300" and "content" in one
    ]
    assert [list(content) for content in answers] == [
        ["text/event-stream" if operation["operationId"] == stream.NAME else "application/json"]
    ]
    assert all("example" in one for content in answers for one in content.values())
    if "requestBody" in operation:
        assert "example" in operation["requestBody"]["content"]["application/json"]
    refusals = {status for status in operation["responses"] if status >= "400"}
    assert refusals >= {"401", "403", "404", "422", "429", "503"}


def test_every_tag_is_used_and_described() -> None:
    used = {tag for _, _, operation in OPERATIONS for tag in operation["tags"]}
    assert used == {tag["name"] for tag in DOCUMENT["tags"] if tag["description"]}


def test_every_object_says_what_is_in_it() -> None:
    for name, schema in DOCUMENT["components"]["schemas"].items():
        assert schema.get("description"), name
        for key, found in schema.get("properties", {}).items():
            assert {"type", "$ref", "anyOf", "description"} & found.keys(), (name, key)


class TestServed:
    @pytest.fixture
    def answer(self, client: Client) -> Any:
        return client.get("/api/v1/openapi.json")

    def test_it_is_public_and_the_file(self, answer: Any) -> None:
        assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
        assert json.loads(answer.content) == {**DOCUMENT, "servers": [{"url": "/api/v1"}]}
        assert not answer.cookies
        assert "Vary" not in answer

    def test_it_is_sent_again_only_if_it_has_changed(self, client: Client, answer: Any) -> None:
        again = client.get("/api/v1/openapi.json", headers={"If-None-Match": f'"other", {answer["ETag"]}'})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", answer["ETag"])
        other = client.get("/api/v1/openapi.json", headers={"If-None-Match": '"other"'})
        assert other.status_code == 200

    def test_it_has_the_address_below_which_it_is(self, client: Client, answer: Any) -> None:
        below = client.get("/api/v1/openapi.json", SCRIPT_NAME="/ops")
        assert json.loads(below.content)["servers"] == [{"url": "/ops/api/v1"}]
        assert below["ETag"] != answer["ETag"]

    def test_it_takes_nothing_else(self, client: Client) -> None:
        assert client.post("/api/v1/openapi.json").status_code == 405
        assert client.head("/api/v1/openapi.json").status_code == 200


def schemas_in(found: Any) -> list[Any]:
    """Return every schema in a part of the document."""
    if isinstance(found, list):
        return [one for part in found for one in schemas_in(part)]
    if not isinstance(found, dict):
        return []
    own = [found["schema"]] if isinstance(found.get("schema"), dict) else []
    named = [*found["schemas"].values()] if isinstance(found.get("schemas"), dict) else []
    return [
        *own,
        *named,
        *(one for key, part in found.items() if key != "example" for one in schemas_in(part)),
    ]


def references_in(found: Any) -> set[str]:
    return set(re.findall(r'"\$ref": "(#/components/[^"]+)"', json.dumps(found)))
