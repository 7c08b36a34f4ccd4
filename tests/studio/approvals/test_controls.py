"""The form of an answer, made from its schema, and what was typed read back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from engine.values.errors import ParamError
from engine.values.json_schema import check
from studio.approvals.answer_form import filled, placed, read
from studio.approvals.controls import Control, control_of, within


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Where(BaseModel):
    city: str = Field(min_length=1)
    zip: int | None = None


class Everything(BaseModel):
    yes: bool
    many: int = Field(ge=1, le=9)
    price: Decimal
    kind: Literal["a", "b"] = "b"
    big: Literal["1", "2", "3", "4", "5"] | None = None
    colour: Colour = Colour.RED
    short: str = Field("x", max_length=20)
    long: str = ""
    day: date | None = None
    where: Where
    lines: list[int] = []


def form_of(annotation: Any) -> Control:
    return control_of(TypeAdapter(annotation).json_schema())


def flat(control: Control) -> dict[str, tuple[str, bool, str]]:
    """Return kind, whether it is required and the text of each control by its name."""
    return {one.name: (one.kind, one.is_required, one.text) for one in within(control)}


def test_each_field_has_the_control_of_its_type() -> None:
    assert flat(form_of(Everything)) == {
        "answer": ("group", True, ""),
        "answer/yes": ("radio", True, ""),
        "answer/many": ("number", True, ""),
        "answer/price": ("number", True, ""),
        "answer/kind": ("radio", False, '"b"'),
        "answer/big": ("select", False, ""),
        "answer/colour": ("radio", False, '"red"'),
        "answer/short": ("text", False, "x"),
        "answer/long": ("area", False, ""),
        "answer/day": ("text", False, ""),
        "answer/where": ("group", True, ""),
        "answer/where/city": ("area", True, ""),
        "answer/where/zip": ("number", False, ""),
        "answer/lines": ("json", False, "[]"),
    }
    by_key = {one.key: one for one in form_of(Everything).children}
    assert by_key["many"].limits == (("step", "1"), ("min", "1"), ("max", "9"))
    assert (by_key["day"].type, by_key["short"].limits) == ("date", (("maxlength", "20"),))


class Stay(BaseModel):
    since: datetime = datetime(2026, 11, 27, 12, 30, tzinfo=UTC)
    until: datetime | None = None
    price: Decimal = Field(ge=0, le=1000)
    city: str = "Berlin"
    story: str = Field("", max_length=400)
    guests: list[str] = []
    rooms: list[Where] = Field(min_length=1)
    board_type: Colour = Colour.RED


def test_a_control_suits_what_is_typed() -> None:
    by_key = {one.key: one for one in form_of(Stay).children}
    since, until, price = by_key["since"], by_key["until"], by_key["price"]
    assert (since.type, since.text, since.is_moment) == ("datetime-local", "2026-11-27T12:30", True)
    assert (until.type, until.text) == ("datetime-local", "")
    assert (price.limits, price.rules) == (
        (("step", "any"), ("min", "0.0"), ("max", "1000.0")),
        ("0 to 1,000",),
    )
    assert [by_key[key].rows for key in ("city", "story", "guests", "rooms")] == [1, 3, 2, 2]
    assert (by_key["guests"].example, by_key["rooms"].example) == (
        '["text"]',
        '[{"city": "text", "zip": null}]',
    )
    assert by_key["board_type"].label == "Board type"


def test_a_time_without_a_zone_is_in_utc() -> None:
    given = {"answer/since": "2026-11-28T09:05", "answer/until": "2026-11-28T09:05:07", "answer/price": "3"}
    given |= {"answer/rooms": '[{"city": "Ulm"}]'}
    found = read(form_of(Stay), given, Stay.model_json_schema())
    assert found.problems == ()
    assert (found.value["since"], found.value["until"]) == ("2026-11-28T09:05:00Z", "2026-11-28T09:05:07Z")
    assert Stay.model_validate(found.value).since == datetime(2026, 11, 28, 9, 5, tzinfo=UTC)
    wrong = read(form_of(Stay), given | {"answer/since": "soon"}, Stay.model_json_schema())
    assert [problem.path for problem in wrong.problems] == ["since"]


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [(bool, "radio"), (int, "number"), (str, "area"), (Literal["go", "stop"], "radio"), (list[str], "json"),
     (dict[str, int], "json"), (int | str, "area")],
)  # fmt: skip
def test_an_answer_may_be_one_value(annotation: Any, kind: str) -> None:
    assert flat(form_of(annotation)).keys() == {"answer"}
    assert form_of(annotation).kind == kind


def test_any_json_is_typed_as_json() -> None:
    assert flat(control_of(None)) == {"answer": ("json", True, "")}


GIVEN = {
    "answer/yes": "true",
    "answer/many": " 3 ",
    "answer/price": "12.50",
    "answer/kind": '"a"',
    "answer/big": "",
    "answer/colour": '"blue"',
    "answer/short": "",
    "answer/long": "one\r\ntwo",
    "answer/day": "2026-11-21",
    "answer/where/city": "Ulm",
    "answer/where/zip": "",
    "answer/lines": "[1, 2]",
}


def test_what_was_typed_becomes_the_value() -> None:
    given = read(form_of(Everything), GIVEN)
    assert given.problems == ()
    assert given.value == {
        "yes": True,
        "many": 3,
        "price": 12.5,
        "kind": "a",
        "colour": "blue",
        "long": "one\ntwo",
        "day": "2026-11-21",
        "where": {"city": "Ulm"},
        "lines": [1, 2],
    }
    assert check(given.value, Everything.model_json_schema()) == given.value
    assert Everything.model_validate(given.value).price == Decimal("12.5")


@pytest.mark.parametrize(
    ("name", "typed", "path", "said"),
    [
        ("answer/yes", "", "yes", "Choose one."),
        ("answer/yes", "maybe", "yes", "Choose one of these."),
        ("answer/many", "", "many", "This is required."),
        ("answer/many", "three", "many", "Enter a number."),
        ("answer/many", "true", "many", "Enter a number."),
        ("answer/many", "NaN", "many", "Enter a number."),
        ("answer/price", "a lot", "price", "Enter a number."),
        ("answer/kind", '"c"', "kind", "Choose one of these."),
        ("answer/lines", "[1,", "lines", "Line 1"),
    ],
)
def test_what_cannot_be_read_is_told_at_its_place(name: str, typed: str, path: str, said: str) -> None:
    form = form_of(Everything)
    given = read(form, GIVEN | {name: typed})
    (problem,) = given.problems
    assert problem.path == path
    assert problem.message.startswith(said)
    again = {one.name: one for one in within(filled(form, GIVEN | {name: typed}, given.problems))}
    assert (again[name].text, again[name].problems) == (typed, (problem.message,))
    assert again["answer/where/city"].text == "Ulm"


def test_all_that_is_wrong_is_told_at_once_each_at_its_field() -> None:
    """What cannot be read hides neither what the schema refuses of the rest, nor is it reported as missing."""
    annotation = TypeAdapter(Everything).json_schema()
    form = control_of(annotation)
    typed = GIVEN | {
        "answer/many": "12",
        "answer/price": "a lot",
        "answer/kind": '"c"',
        "answer/where/city": "",
        "answer/lines": "[1,",
        "answer/day": "yesterday",
    }
    given = read(form, typed, annotation)
    assert {problem.path for problem in given.problems} == {
        "many",
        "price",
        "kind",
        "where/city",
        "lines",
        "day",
    }
    assert len(given.problems) == 6
    again = {one.path: one.problems for one in within(filled(form, typed, given.problems))}
    assert again["many"] == ("12 is greater than the maximum of 9",)
    assert again["price"] == ("Enter a number.",)
    assert len([path for path, problems in again.items() if problems]) == 6


def test_a_field_may_have_several_problems() -> None:
    annotation = {"type": "string", "maxLength": 3, "pattern": "^a"}
    form = control_of(annotation)
    given = read(form, {"answer": "bbbb"}, annotation)
    assert len(filled(form, {}, given.problems).problems) == 2


def test_errors_of_the_schema_go_to_the_nearest_control() -> None:
    form = form_of(Everything)
    errors = [
        ParamError(path=path, message="Wrong.", code="x")
        for path in ("where/city", "lines/3", "", "no/where")
    ]
    assert [(one.path, one.message) for one in placed(form, errors)] == [
        ("where/city", "Wrong."),
        ("lines", "3: Wrong."),
        ("", "Wrong."),
        ("", "no/where: Wrong."),
    ]


class Maybe(BaseModel):
    where: Where | None = None
    must: int | None


def test_a_group_of_which_nothing_was_typed_is_left_out_and_a_needed_null_is_null() -> None:
    form = form_of(Maybe)
    assert read(form, {}).value == {"must": None}
    assert read(form, {"answer/where/city": "Ulm", "answer/must": "1"}).value == {
        "where": {"city": "Ulm"},
        "must": 1,
    }


class Tree(BaseModel):
    name: str
    kids: list[Tree] = []
    first: Tree | None = None


def test_no_schema_is_refused() -> None:
    assert "json" in {one.kind for one in within(form_of(Tree))}
    for schema in (
        {"type": "object", "properties": {"a/b": {"type": "string"}}},
        {"$ref": "#/$defs/Nothing"},
        {"oneOf": [{"type": "string"}, {"type": "object"}]},
        {"enum": [[1], {"a": 1}]},
        {"type": ["string", "null"]},
        {"allOf": [{"type": "string"}]},
        {"anyOf": [True, {"type": "null"}]},
        {"type": "object", "properties": {"": {"type": "string"}, "x": True}},
    ):
        form = control_of(schema)
        read(form, {"answer": "1"})
        filled(form, {"answer": "<b>"}, [])
