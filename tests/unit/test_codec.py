"""Values of annotated types: written, read back equal in type too, or refused (CF-11)."""

import collections
import dataclasses
import enum
import math
import re
import typing
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_serializer, field_validator
from typing_extensions import TypedDict

from engine.values.errors import InvalidParamsError, InvalidValueError, LimitError
from engine.values.serialization import Codec, InvalidJSON

NEW_YEAR = datetime(2024, 1, 1)  # noqa: DTZ001 - a naive one has to survive too
UTC_NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)
WHAT = 'output of step "x"'


class Colour(enum.Enum):
    RED = "red"
    ONE = 1


@dataclasses.dataclass
class Everything:
    at: datetime
    day: date
    clock: time
    took: timedelta
    price: Decimal
    id: uuid.UUID
    tags: set[str]
    raw: bytes
    pair: tuple[int, str]
    colour: Colour
    by_number: dict[int, str]
    maybe: str | None = None


class Item(BaseModel):
    qty: int
    raw: bytes = b""
    weight: float = 1.0
    extra: Any = None


class Order(BaseModel):
    items: list[Item]


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


class Aliased(BaseModel):
    model_config = ConfigDict(extra="forbid")
    user: str = Field(alias="userName", serialization_alias="u")

    @computed_field
    def shout(self) -> str:
        return self.user.upper()


class Hex(BaseModel):
    model_config = ConfigDict(ser_json_bytes="hex", val_json_bytes="hex")
    raw: bytes


class Old(typing.TypedDict):
    at: datetime
    note: NotRequired[bytes]


class Partial(typing.TypedDict, total=False):
    at: datetime


class New(TypedDict):
    raw: bytes
    n: NotRequired[int]


class Point(NamedTuple):
    x: int
    at: date


EVERYTHING = Everything(
    at=datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=timezone(timedelta(hours=14))),
    day=date(1, 1, 1),
    clock=time(23, 59, 59, 999_999),
    took=timedelta(days=-3, microseconds=7),
    price=Decimal("1.10"),
    id=uuid.UUID(int=5),
    tags={"a"},
    raw=b"\x00\xff",
    pair=(1, "x"),
    colour=Colour.ONE,
    by_number={1: "a"},
)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Everything, EVERYTHING),
        (dict[str, Everything], {"a": EVERYTHING}),
        (list[Everything] | None, [EVERYTHING]),
        (Item, Item(qty=1, raw=b"\x00\xff\xfe", extra={"a": [1, None]})),
        (Order, Order(items=[Item(qty=1, raw=b"\x80")])),
        (list[Order], [Order(items=[])]),
        (Tree, Tree(value=1, children=[Tree(value=2)])),
        (Aliased, Aliased(userName="x")),
        (Hex, Hex(raw=b"\xff")),
        (Old, {"at": UTC_NEW_YEAR, "note": b"\xff"}),
        (Old, {"at": UTC_NEW_YEAR}),
        (Partial, {}),
        (list[Partial], [{"at": NEW_YEAR}]),
        (Old | None, {"at": NEW_YEAR}),
        (Optional[Annotated[Old, "note"]], {"at": NEW_YEAR}),  # noqa: UP045
        (typing.Dict[str, Old], {"a": {"at": NEW_YEAR}}),  # noqa: UP006
        (New, {"raw": b"\xff"}),
        (Point, Point(1, date(2024, 1, 1))),
        (bytes, b"\x00\xff"),
        (bytes | None, None),
        (datetime, UTC_NEW_YEAR),
        (datetime | str, NEW_YEAR),
        (Decimal, Decimal("1E+400")),
        (Decimal, Decimal("0.10")),
        (uuid.UUID, uuid.UUID(int=7)),
        (set[date], {date(2024, 1, 1)}),
        (frozenset[int], frozenset({1})),
        (tuple, (1, "a")),
        (tuple[int, ...], (1, 2)),
        (list, [1, {"a": None}]),
        (dict, {"a": [1]}),
        (set, {1, 2}),
        (dict[str, Any], {"a": {"b": [1.5, None]}}),
        (dict[date, int], {date(2024, 1, 1): 1}),
        (Mapping[str, int], {"a": 1}),
        (Sequence[int], [1]),
        (collections.deque[int], collections.deque([1])),
        (collections.OrderedDict[str, int], collections.OrderedDict(a=1)),
        (Colour, Colour.RED),
        (dict[Colour, int], {Colour.RED: 1}),
        (Literal["a"], "a"),
        (Annotated[int, ["not hashable"]], 1),
        (None, None),
        (type(None), None),
        (int, 0),
        (int | str, "1"),
        (int | float, 1e16),
        (float, -0.0),
        (str, "\\u0000"),
        (bool, False),
        (Any, {"a": [1]}),
        (object, [1]),
        (TypeVar("T"), {"a": 1}),
    ],
)
def test_a_value_comes_back_equal_and_of_the_same_type(annotation, value):
    """CF-11: the same types live and on replay."""
    stored = Codec.of(annotation).store(value, WHAT)
    assert stored.value == value
    assert type(stored.value) is type(value)
    assert Codec.of(annotation).encode(stored.value, WHAT) == stored.text


@pytest.mark.parametrize("value", [-0.0, 1e16, 0.1, 5e-324])
def test_a_float_stays_that_float(value):
    for annotation in (float, int | float, Any, list[float]):
        given = [value] if annotation == list[float] else value
        assert repr(Codec.of(annotation).store(given).value) == repr(given)


def test_the_value_that_is_handed_on_is_not_the_one_that_was_returned():
    item = Item(qty=1, extra={"a": []})
    stored = Codec.of(Item).store(item, WHAT)
    item.extra["a"].append(1)
    assert stored.value == Item(qty=1, extra={"a": []})


class Rebel(BaseModel):
    n: int

    @field_serializer("n")
    def write(self, value: int) -> int:
        raise RuntimeError("will not")


class Custom(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def check(cls, value: int) -> int:
        raise KeyError("validator bug")


class Lossy(BaseModel):
    n: int

    @field_serializer("n")
    def write(self, value: int) -> str:
        return "many"


@pytest.mark.parametrize(
    ("annotation", "value", "code", "path"),
    [
        (int, "five", "int_parsing", "$"),
        (str, 5, "string_type", "$"),
        (None, 5, "none_required", "$"),
        (Order, {"items": [{"qty": 1}, {"qty": "x"}]}, "int_parsing", "$.items[1].qty"),
        (Item, Item(qty=1, weight=math.nan), "not_finite", "$.weight"),
        (Order, Order(items=[Item(qty=1, weight=math.inf)]), "not_finite", "$.items[0].weight"),
        (float, math.nan, "not_finite", "$"),
        (Decimal, Decimal("NaN"), "finite_number", "$"),
        (int, 2**63, "integer_too_large", "$"),
        (str, "a\x00", "nul_character", "$"),
        (dict[str, str], {"a": "\ud800"}, "lone_surrogate", "$.a"),
        (dict[str, int], {1: 1}, "string_type", "$[1]"),
        (dict, {1: 2}, "string_type", "$[1]"),
        (dict, {"a": {1}}, "not_json", "$.a"),
        (list, [NEW_YEAR], "not_json", "$[0]"),
        (dict[str, Any], {"a": b"x"}, "not_json", "$.a"),
        (Item, Item(qty=1, extra={"a": {1}}), "not_serializable", "$"),
        (Rebel, Rebel(n=1), "not_serializable", "$"),
        (Custom, {"n": 1}, "not_serializable", "$"),
        (Lossy, Lossy(n=1), "int_parsing", "$.n"),
        (typing.Callable[[], int], print, "not_serializable", "$"),
        (dict[Colour, int], {Colour.ONE: 1}, "enum", '$["1"]'),
        (Item, Item.model_construct(qty="many"), "int_parsing", "$.qty"),
    ],
)
def test_what_could_not_be_read_back_is_never_written(annotation, value, code, path):
    """LC-20: a value that its annotation refuses."""
    with pytest.raises(InvalidValueError) as refused:
        Codec.of(annotation).encode(value, WHAT)
    assert (refused.value.code, refused.value.path) == (code, path)
    why = r"(cannot be stored|does not match its type \S.*)"
    assert re.match(rf"The {re.escape(WHAT)} {why}\. At {re.escape(path)}: ", str(refused.value))


def test_a_refusal_has_the_validation_error_as_its_cause():
    with pytest.raises(
        InvalidValueError, match=r"Input should be a valid integer.*\(1 more of its parts do not match\.\)"
    ) as refused:
        Codec.of(Order).encode({"items": [{"qty": "x"}, {"qty": "y"}]})
    assert type(refused.value.__cause__).__name__ == "ValidationError"


def test_the_size_is_that_of_the_text():
    with pytest.raises(LimitError, match="is 1,398,106 bytes; the limit is 1,048,576 bytes"):
        Codec.of(bytes).encode(b"x" * 2**20, WHAT)
    assert len(Codec.of(bytes).encode(b"x" * 2**19, WHAT)) < 2**20


class Unknown:
    pass


@pytest.mark.parametrize(
    "annotation",
    [
        Unknown,
        list[Unknown],
        "Undefined",
        typing.Iterator[int],
        typing.Generator[int, None, None],
        BaseModel,
        bytearray,
    ],
)
def test_an_annotation_that_pydantic_cannot_use_leaves_plain_json(annotation):
    codec = Codec.of(annotation)
    assert codec.schema() is None
    assert codec.store({"a": (1,)}, WHAT).value == {"a": [1]}
    with pytest.raises(InvalidValueError) as refused:
        codec.encode({"a": Unknown()}, WHAT)
    assert "is not a JSON type" in refused.value.message
    assert codec.problem
    assert refused.value.message.endswith(codec.problem)


def test_a_new_type_that_refuses_a_recorded_value_says_where():
    """Guarantee 4: a recorded output that the new types refuse."""
    with pytest.raises(InvalidValueError) as refused:
        Codec.of(Order).decode('{"items":[{"count":1}]}', WHAT)
    assert (refused.value.path, refused.value.code) == ("$.items[0].qty", "missing")
    with pytest.raises(InvalidValueError):
        Codec.of(int).decode("{")
    with pytest.raises(InvalidJSON):
        Codec.of(Any).decode("{")


def test_params_from_python_are_validated_into_their_type():
    assert Codec.of(Order).validate({"items": [{"qty": "2"}]}) == Order(items=[Item(qty=2)])
    assert Codec.of(Any).validate({"a": (1,)}) == {"a": [1]}


def test_wrong_params_are_listed_with_paths():
    with pytest.raises(InvalidParamsError) as refused:
        Codec.of(Order).validate_json('{"items":[{"qty":"x"},{}]}')
    assert refused.value.errors == [
        {
            "path": "items/0/qty",
            "message": "Input should be a valid integer, unable to parse string as an integer",
            "code": "int_parsing",
        },
        {"path": "items/1/qty", "message": "Field required", "code": "missing"},
    ]
    with pytest.raises(InvalidParamsError) as refused:
        Codec.of(Order).validate([])
    assert [error["path"] for error in refused.value.errors] == [""]
    with pytest.raises(InvalidParamsError) as refused:
        Codec.of(Any).validate({"a": [{1}]})
    assert [(error["path"], error["code"]) for error in refused.value.errors] == [("a/0", "unsupported_type")]


def test_params_as_a_text_go_through_the_one_reader():
    assert Codec.of(Order).validate_json(b'{"items":[{"qty":2}]}') == Order(items=[Item(qty=2)])
    assert Codec.of(Aliased).validate_json('{"userName":"x"}') == Aliased(userName="x")
    assert Codec.of(Any).validate_json("[1]") == [1]
    for text in ('{"items":[],"items":[]}', '{"items":[NaN]}', "{", '{"x":1e400}'):
        with pytest.raises(InvalidJSON):
            Codec.of(Order).validate_json(text)
    with pytest.raises(InvalidJSON, match="the limit is 5 bytes"):
        Codec.of(Any).validate_json('"abcd"', limit=5)


def test_the_schema_is_the_types():
    assert Codec.of(Tree).schema()["$defs"]["Tree"]["properties"]["value"]["type"] == "integer"
    assert Codec.of(list[str]).schema() == {"type": "array", "items": {"type": "string"}}
    assert Codec.of(Any).schema() is None


def test_fields_may_be_called_as_parts_of_pydantics_schemas_are():
    class Named(BaseModel):
        type: Literal["card", "voucher"]
        config: bytes = b"\xff"
        metadata: list = []

    named = Named(type="card", metadata=[{"a": 1}])
    assert Codec(Named).problem == ""
    assert Codec(Named).store(named).value == named
    with pytest.raises(InvalidValueError, match="set is not a JSON type"):
        Codec(Named).store(Named(type="card", metadata=[{1, 2}]))


def test_a_codec_is_made_once_for_a_type():
    assert Codec.of(list[Item]) is Codec.of(list[Item])
    assert Codec.of(Literal[1]) is not Codec.of(Literal[True])
