"""Which parts of a schema have fields, and which are typed as JSON. Needs no database."""

from __future__ import annotations

import time
from typing import Any

import pytest

from studio.forms.building import build
from studio.forms.controls import Control, within

TEXT = {"type": "string"}


def kinds(schema: dict[str, Any], document: Any) -> dict[str, str]:
    return {one.where: one.kind for one in within(build(schema, document))}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


ODD: list[dict[str, Any]] = [
    {"not": TEXT},
    {"if": TEXT, "then": {"minLength": 3}},
    {"type": "object", "patternProperties": {"^x": TEXT}},
    {"type": "object", "properties": {"x": TEXT}, "dependentRequired": {"x": ["y"]}},
    {"type": "array", "prefixItems": [TEXT, TEXT]},
    {"allOf": [TEXT, {"minLength": 3}]},
    {"anyOf": [TEXT, {"type": "integer"}], "minLength": 2},
    {"enum": [{"a": 1}, [2]]},
    {"$ref": "#/$defs/nowhere"},
    {"$ref": "https://elsewhere.example/schema"},
    {},
    {"type": "null"},
]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_what_no_field_can_show_is_json_and_its_neighbours_have_fields(odd: dict[str, Any]) -> None:
    for value in (None, "x", 3, [1], {"x": 1}):
        found = kinds(of(odd=odd, plain=TEXT), {"odd": value, "plain": "x"})
        assert found == {"": "group", "odd": "json", "plain": "area"}


def test_a_type_that_contains_itself_is_json_from_there_on() -> None:
    tree = of(name=TEXT, children={"type": "array", "items": {"$ref": "#/$defs/tree"}})
    root = {"$ref": "#/$defs/tree", "$defs": {"tree": tree}}
    found = kinds(root, {"name": "a", "children": [{"name": "b", "children": []}]})
    assert found == {"": "group", "name": "area", "children": "list", "children/0": "json"}


def test_a_thousand_fields_are_json_only_there() -> None:
    many = of(**{f"field-{number}": TEXT for number in range(1_000)})
    found = kinds(of(first=TEXT, many=many, last=TEXT), {"first": "", "many": {}, "last": ""})
    assert found == {"": "group", "first": "area", "many": "json", "last": "area"}
    items = {"type": "array", "items": TEXT}
    assert kinds(of(items=items), {"items": ["x"] * 100_000}) == {"": "group", "items": "json"}


def test_deep_documents_and_many_alternatives_are_built_quickly() -> None:
    deep: Any = TEXT
    document: Any = "x"
    for _ in range(50):
        deep, document = {"type": "array", "items": deep}, [document]
    options = [of(kind={"const": f"kind-{number}"}, value=TEXT) for number in range(40)]
    union = {"type": "array", "items": {"oneOf": options}}
    began = time.perf_counter()
    found = kinds(
        of(deep=deep, union=union),
        {"deep": document, "union": [{"kind": f"kind-{number}", "value": ""} for number in range(40)]},
    )
    assert time.perf_counter() - began < 5
    assert found["union/39/value"] == "area"
    assert "json" in found.values()


def test_an_alternative_is_found_by_what_names_it_even_if_it_is_not_valid() -> None:
    root = of(pay={"oneOf": [of(kind={"const": "card"}, token=TEXT), of(kind={"const": "bank"}, iban=TEXT)]})

    def union(document: Any) -> Control:
        return next(one for one in within(build(root, document)) if one.kind == "union")

    assert union({"pay": {"kind": "bank"}}).picked == 1
    assert union({"pay": {"kind": "card", "iban": "x"}}).picked == 0
