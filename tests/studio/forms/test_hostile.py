"""A form that no page has sent changes nothing it should not, and never ends in an error of the server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Literal

import pytest
from django.test import Client
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, SecretStr, TypeAdapter

from engine import WorkflowStep, workflow
from engine.values.serialization.secret_schema import json_schema
from studio.forms.changes import VERBS
from studio.forms.document import dump
from studio.forms.json_form import JsonForm, document_of
from tests.studio.forms.as_sent import as_sent
from tests.studio.forms.test_form import opened


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    name: str = ""


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    toys: list[str] = []


class Zoo(BaseModel):
    pet: Cat | Dog = Field(default_factory=Cat, discriminator="kind")
    pets: list[Cat | Dog] = []
    cages: dict[str, list[int]] = {}
    open: bool = True
    day: date | None = None
    at: datetime | None = None
    size: Literal["s", "m", "l", "xl", "xxl"] = "s"
    code: SecretStr | None = None
    rest: Any = None


Nested = RootModel[Cat | Dog | list[int] | None]
ROOTS: list[tuple[Mapping[str, Any], object]] = [
    (
        json_schema(TypeAdapter(Zoo)),
        {
            "pet": {"kind": "cat", "name": "x"},
            "pets": [{"kind": "dog", "toys": ["a"]}, {"kind": "cat"}],
            "cages": {"a": [1], "b/c": []},
            "day": "2026-12-01",
        },
    ),
    (Nested.model_json_schema(), {"kind": "dog", "toys": ["a"]}),
    ({"anyOf": [{"oneOf": [{"type": "integer"}, {"type": "boolean"}]}, {"type": "array", "items": {}}]}, 3),
    (TypeAdapter(dict[str, Cat | Dog]).json_schema(), {"a": {"kind": "cat"}}),
    (TypeAdapter(list[int | str]).json_schema(), [1, "x"]),
    *((TypeAdapter(kind).json_schema(), value) for kind, value in ((int, 3), (str, "x"), (bool, True))),
]
POINTERS = [
    "",
    "/",
    "/pet",
    "/pet/name",
    "/pets",
    "/pets/0",
    "/pets/1",
    "/pets/9",
    "/pets/0/toys/0",
    "/pets/x",
]
POINTERS += [
    "/cages",
    "/cages/a",
    "/cages/a/0",
    "/cages/b~1c",
    "/open",
    "/day",
    "/at",
    "/size",
    "/code",
    "/rest",
]
POINTERS += [
    "/0",
    "/1",
    "/-1",
    "/toys",
    "/toys/0",
    "/a",
    "/a/name",
    "/~",
    "/~2",
    "//",
    "/nowhere",
    "/pets/00",
]
VALUES = [
    "",
    " ",
    "0",
    "1",
    "-1",
    "99",
    "9" * 5_000,
    "²",
    "٣",
    "x",
    "true",
    '"s"',
    "null",
    "[" * 3_000,
    "{",
    "NaN",
]
VALUES += ['{"a": 1}', "2026-02-30", "\x00", "\ud7ff", "-0", "1e999", "a", "b/c", "~", "x" * 300]
BEGINNINGS = ["f.", "z.", "n.", "k.", "u.", "o.", "new."]
pointers, values = st.sampled_from(POINTERS), st.sampled_from(VALUES)
ops = st.one_of(
    st.sampled_from(["", "check", "tab:form", "tab:json", "tab:", ":", "pick", "x:y"]),
    st.builds("{}:{}".format, st.sampled_from(sorted(VERBS)), pointers),
)
inputs = st.dictionaries(st.builds("{}{}".format, st.sampled_from(BEGINNINGS), pointers), values, max_size=6)


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(ROOTS), ops, inputs)
@example(ROOTS[5], "remove:", {})
@example(ROOTS[5], "leave-out:", {"f.": ""})
@example(ROOTS[2], "check", {"f.": "x"})
@example(ROOTS[0], "add:/pet", {})
@example(ROOTS[0], "enter:/pets", {"new./pets": "x"})
@example(ROOTS[0], "", {"o./pet": "9" * 5_000, "u./pet": "9" * 5_000})
@example(ROOTS[0], "", {"f./open": "[" * 3_000})
def test_whatever_is_posted_there_is_a_form_and_a_document(
    begun: tuple[Mapping[str, Any], object], op: str, typed: dict[str, str]
) -> None:
    root, document = begun
    form = JsonForm.posted(root, {"tab": "form", "params": dump(document), "op": op, **typed})
    form.placed(form.problems)
    form.controls(form.problems)
    form.without_secrets().controls()
    assert document_of(form.text) is not None or "\0" in "".join(typed.values())


@pytest.mark.django_db
class TestPosted:
    @pytest.fixture(autouse=True)
    def declared(self, own_registry: None) -> None:
        @workflow("zoo")
        async def zoo(step: WorkflowStep, zoo: Zoo) -> None:
            """Feed them."""

        @workflow("many")
        async def many(step: WorkflowStep, pets: list[Cat | Dog]) -> None:
            """Feed many."""

    @pytest.mark.parametrize(
        "typed",
        [
            {"op": "add:/pet"},
            {"op": "enter:/pets"},
            {"op": "remove:"},
            {"op": "leave-out:"},
            {"op": "remove:/open"},
            {"op": "check", "o./pet": "9" * 5_000},
            {"op": "pick:/pet", "u./pet": "9" * 5_000},
            {"op": "check", "f./open": "[" * 3_000},
            {"op": "check", "f./open": "maybe"},
        ],
        ids=lambda typed: str(typed)[:60],
    )
    def test_a_form_of_another_page_breaks_nothing(self, operator: Client, typed: dict[str, str]) -> None:
        sent = opened(operator, ROOTS[0][1], "zoo")
        answer = operator.post("/workflows/zoo/start/", {**sent, **typed})
        assert answer.status_code == 200
        assert as_sent(answer.content.decode())["params"] == sent["params"]

    def test_a_form_never_has_more_inputs_than_are_taken(self, operator: Client) -> None:
        sent = opened(operator, [{"kind": "cat", "name": str(number)} for number in range(300)], "many")
        assert 600 < len(sent) < 1_000
