"""Plain values on their way into the database."""

import collections
import enum
import json
import time
import uuid
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.values.errors import InvalidValueError, LimitError
from engine.values.serialization import decode, encode, read_json

CYCLE: list = []
CYCLE.append({"a": CYCLE})
MAPPING_CYCLE: dict = {}
MAPPING_CYCLE["self"] = [MAPPING_CYCLE]


class Colour(enum.Enum):
    RED = "red"


class Mood(enum.StrEnum):
    GOOD = "good"


class Level(enum.IntEnum):
    LOW = 1


class Rude:
    def __repr__(self):
        raise RuntimeError

    __str__ = __repr__


@pytest.mark.parametrize(
    ("value", "code", "path", "said"),
    [
        ({"a": [{1, 2}]}, "unsupported_type", "$.a[0]", "of type set"),
        (b"x", "unsupported_type", "$", "of type bytes"),
        ({"at": datetime(2024, 1, 1, tzinfo=UTC)}, "unsupported_type", "$.at", "of type datetime.datetime"),
        ([Decimal(1)], "unsupported_type", "$[0]", "of type decimal.Decimal"),
        (uuid.UUID(int=0), "unsupported_type", "$", "of type uuid.UUID"),
        ((x for x in []), "unsupported_type", "$", "of type generator"),
        (lambda: 1, "unsupported_type", "$", "of type function"),
        (object(), "unsupported_type", "$", "of type object"),
        (1 + 2j, "unsupported_type", "$", "of type complex"),
        (range(3), "unsupported_type", "$", "of type range"),
        (Rude(), "unsupported_type", "$", "Rude"),
        ({"c": Colour.RED}, "unsupported_type", "$.c", "Colour"),
        ([Mood.GOOD], "unsupported_type", "$[0]", "Mood"),
        ([Level.LOW], "unsupported_type", "$[0]", "Level"),
        ({Mood.GOOD: 1}, "key_not_text", "$", "Mood"),
        ({1: "a"}, "key_not_text", "$", "of type int"),
        ({"a": {None: 1}}, "key_not_text", "$.a", "of type NoneType"),
        ({True: 1}, "key_not_text", "$", "of type bool"),
        ({1.5: 1}, "key_not_text", "$", "of type float"),
        ({(1, 2): 1}, "key_not_text", "$", "of type tuple"),
        (CYCLE, "cyclic", "$[0].a", "contains itself"),
        (MAPPING_CYCLE, "cyclic", "$.self[0]", "contains itself"),
        (float("nan"), "not_finite", "$", "not valid JSON numbers"),
        ({"a": [1.0, float("inf")]}, "not_finite", "$.a[1]", "not valid JSON numbers"),
        ([float("-inf")], "not_finite", "$[0]", "not valid JSON numbers"),
        ({"n": 2**63}, "integer_too_large", "$.n", "64 bits"),
        pytest.param(-(10**5000), "integer_too_large", "$", "64 bits", id="-10**5000"),
        ({"a": "x\x00"}, "nul_character", "$.a", "NUL"),
        ({"a": {"x\x00": 1}}, "nul_character", '$.a["x\\u0000"]', "NUL"),
        (["\ud800"], "lone_surrogate", "$[0]", "surrogate"),
        ({"\udfff": 1}, "lone_surrogate", '$["\\udfff"]', "surrogate"),
        ({"k" * 257: 1}, "key_too_long", f'$["{"k" * 64}\\u2026"]', "256"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_path_and_reason(value, code, path, said):
    """CF-91, LC-11."""
    with pytest.raises(InvalidValueError) as refused:
        encode(value, what='output of step "x"')
    assert (refused.value.code, refused.value.path) == (code, path)
    assert said in refused.value.message
    assert str(refused.value).startswith(f'The output of step "x" cannot be stored. At {path}: ')


def test_the_advice_is_to_annotate():
    with pytest.raises(InvalidValueError, match="Annotate the return type with one that can be stored"):
        encode({1, 2})
    with pytest.raises(InvalidValueError, match=r"Annotate the return type \(such as dict\[int, str\]\)"):
        encode({1: 2})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (0, "0"),
        ("", '""'),
        ({}, "{}"),
        (False, "false"),
        ((1, (2,)), "[1,[2]]"),
        ({"zz": 1, "b": [1.5, -0.0, 1e16]}, '{"zz":1,"b":[1.5,-0.0,1e+16]}'),
        ("é😀\u2028\\u0000", '"é😀\u2028\\\\u0000"'),
        (-(2**63), "-9223372036854775808"),
        (collections.OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (collections.Counter("aab"), '{"a":2,"b":1}'),
        (collections.namedtuple("P", "x y")(1, 2), "[1,2]"),
        (type("Text", (str,), {"__str__": lambda self: "lie"})("true"), '"true"'),
        (type("Number", (int,), {"__int__": lambda self: 9})(5), "5"),
    ],
)
def test_a_value_is_written_as(value, text):
    assert encode(value) == text


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_of_64_levels_is_stored_and_65_is_not():
    assert decode(encode(nested(64))) == nested(64)
    for value in (nested(65), [nested(64)], {"a": nested(64)}, nested(100_000)):
        with pytest.raises(InvalidValueError) as refused:
            encode(value)
        assert refused.value.code == "too_deep"
    empty = []
    for _ in range(64):
        empty = [empty]
    with pytest.raises(InvalidValueError):
        encode(empty)


def test_the_size_is_limited_in_bytes_and_the_error_names_both():
    """CF-92."""
    assert len(encode("x" * (2**20 - 2))) == 2**20
    for value, size in (("x" * (2**20 - 1), 2**20 + 1), ("é" * 2**19, 2**20 + 2)):
        with pytest.raises(LimitError) as refused:
            encode(value, what='output of step "report"')
        assert (refused.value.value, refused.value.limit) == (size, 2**20)
        assert str(refused.value) == (
            f'The output of step "report" is {size:,} bytes; the limit is 1,048,576 bytes. '
            "Store large data elsewhere and pass on a reference to it."
        )


def test_a_value_that_unfolds_without_end_is_refused_at_once():
    bomb: list = []
    for _ in range(60):
        bomb = [bomb, bomb]
    text_bomb = ["x" * 100_000] * 50_000
    dict_bomb: dict = {}
    for _ in range(60):
        dict_bomb = {"a": dict_bomb, "b": dict_bomb}
    wide: list = [0] * 60_000
    started = time.process_time()
    for value, error in ((bomb, InvalidValueError), (dict_bomb, InvalidValueError), (text_bomb, LimitError)):
        with pytest.raises(error):
            encode(value)
    with pytest.raises(InvalidValueError):
        encode([wide] * 60_000)
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    "value",
    [
        [0] * 99_999,
        [[]] * 66_666,
        [{}] * 66_666,
        [[0]] * 49_999,
        {str(n): 0 for n in range(49_999)},
        [{"a": 0}] * 33_333,
    ],
)
def test_writer_and_reader_count_the_same_tokens(value):
    text = encode(value)
    assert len(read_json(text)) == len(value)


@pytest.mark.parametrize(
    "value", [[0] * 100_000, [[]] * 66_667, [[0]] * 50_000, {str(n): 0 for n in range(50_000)}]
)
def test_what_the_reader_would_refuse_is_not_written(value):
    with pytest.raises(InvalidValueError, match="more than 200,000 parts"):
        encode(value)
    with pytest.raises(InvalidValueError, match="more than 200,000 parts"):
        read_json(json.dumps(value))


def test_the_record_does_not_follow_later_changes():
    value = {"items": [1]}
    text = encode(value)
    value["items"].append(2)
    assert decode(text) == {"items": [1]}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", codec="utf-8")),
    lambda inner: st.lists(inner, max_size=5)
    | st.dictionaries(st.text(st.characters(exclude_characters="\x00", codec="utf-8"), max_size=8), inner, max_size=5),
    max_leaves=30,
)  # fmt: skip


@given(json_values)
def test_every_json_value_comes_back_equal_in_type_too(value):
    assert repr(decode(encode(value))) == repr(value)
    assert repr(read_json(encode(value))) == repr(value)
