"""Texts from outside and from the database."""

import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.values.serialization import InvalidJSON, Unreadable, decode, decode_strict, encode, read_json
from engine.values.serialization.parser import locate


def refusal(data, **options):
    with pytest.raises(InvalidJSON) as refused:
        read_json(data, **options)
    return refused.value


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        (r'{"a":"x\u0000y"}', "nul_character", "$.a"),
        (r'{"b":[1,{"x\u0000":1}]}', "nul_character", "$.b[1]"),
        (r'{"a":["\ud800"]}', "lone_surrogate", "$.a[0]"),
        (r'"\udc00"', "lone_surrogate", "$"),
        (r'"\udc00\ud800"', "lone_surrogate", "$"),
        (r'{"\ud800":1}', "lone_surrogate", "$"),
        ('{"a":NaN}', "not_finite", "$.a"),
        ("[1,Infinity]", "not_finite", "$[1]"),
        ("[[-Infinity]]", "not_finite", "$[0][0]"),
        ('{"a":1e400}', "not_finite", "$.a"),
        ("1e131072", "not_finite", "$"),
        ("-1e999999999", "not_finite", "$"),
        ("9" * 400 + ".5", "not_finite", "$"),
        ('{"n":9223372036854775808}', "integer_too_large", "$.n"),
        ("-9223372036854775809", "integer_too_large", "$"),
        pytest.param("[" + "1" * 4301 + "]", "integer_too_large", "$[0]", id="4,301 digits"),
        ('{"a":1,"a":2}', "duplicate_key", "$.a"),
        (r'{"b":{"a":1,"\u0061":2}}', "duplicate_key", "$.b.a"),
        ('{"b":[{"' + "k" * 257 + '":1}]}', "key_too_long", f'$.b[0]["{"k" * 64}\\u2026"]'),
        ('{"a.b":{"c d":{"$":{"[0]":NaN}}}}', "not_finite", '$["a.b"]["c d"]["$"]["[0]"]'),
        ('{"":NaN}', "not_finite", '$[""]'),
        ('{"a":1}x', "not_json", "$"),
        ("{'a':1}", "not_json", "$"),
        ('{"a":1,}', "not_json", "$"),
        ("[1,]", "not_json", "$[1]"),
        ("[1 2]", "not_json", "$"),
        ('{"a" 1}', "not_json", "$.a"),
        ('{"a":}', "not_json", "$.a"),
        ("[1,2", "not_json", "$"),
        ('{"a":1', "not_json", "$"),
        ("{", "not_json", "$"),
        ("[", "not_json", "$[0]"),
        ('{"a":1} // why', "not_json", "$"),
        ("/* why */ 1", "not_json", "$"),
        ('["a\nb"]', "not_json", "$[0]"),
        ('"a\x00b"', "not_json", "$"),
        ('"abc', "not_json", "$"),
        (r'"\x"', "not_json", "$"),
        (r'"\u12"', "not_json", "$"),
        ("+1", "not_json", "$"),
        ("01", "not_json", "$"),
        (".5", "not_json", "$"),
        ("1.", "not_json", "$"),
        ("1_000", "not_json", "$"),
        ("１", "not_json", "$"),
        ("nul", "not_json", "$"),
        ("True", "not_json", "$"),
        ("[tru]", "not_json", "$[0]"),
        ("", "not_json", "$"),
        (" \n", "not_json", "$"),
        ("\u00a01", "not_json", "$"),
        ("\ufeff1", "byte_order_mark", "$"),
        ('{"a":"\ud800"}', "lone_surrogate", "$"),
        (b"\xef\xbb\xbf1", "byte_order_mark", "$"),
        ('"a"'.encode("utf-16"), "byte_order_mark", "$"),
        ('"a"'.encode("utf-16-le"), "not_json", "$"),
        (b'{"a":"\xff"}', "invalid_utf8", "$"),
        (b'"\xed\xa0\x80"', "invalid_utf8", "$"),
        (b'"\xc0\x80"', "invalid_utf8", "$"),
    ],
)
def test_what_is_refused_has_a_code_and_a_path(text, code, path):
    error = refusal(text)
    assert (error.code, error.path) == (code, path)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": 1,\n "b": NaN}', 2, 7),
        ('{\n  "a": 1\n  "b": 2\n}', 3, 3),
        ("[1,\n2,\n3}", 3, 2),
        ("", 1, 1),
        (b'["\xc3\xa4",\n "\xff"]', 2, 3),
        ('{"a":1,"a":2}', 1, 8),
    ],
)
def test_a_refusal_points_to_line_and_column(text, line, column):
    error = refusal(text)
    assert (error.line, error.column) == (line, column)


def test_a_refusal_is_a_sentence_with_the_place():
    assert str(refusal('{"items":[{"qty":NaN}]}', what="params")) == (
        "The params cannot be read as JSON (line 1, column 18, $.items[0].qty): "
        "NaN and infinity are not valid JSON numbers."
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ('"x"', "x"),
        ('""', ""),
        ("1", 1),
        ("[]", []),
        (" \t\r\n{} ", {}),
        ("9007199254740993", 9007199254740993),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1e16", 1e16),
        ("1E+2", 100.0),
        ("-0.0", -0.0),
        ("-0", 0),
        ("0.1000000000000000055511151231257827", 0.1),
        (r'"\\u0000"', "\\u0000"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\\ud800"', "\\ud800"),
        ('"NaN Infinity 1e5"', "NaN Infinity 1e5"),
        ('{"__proto__":{},"constructor":1,"":2}', {"__proto__": {}, "constructor": 1, "": 2}),
        ('{"' + "k" * 256 + '":1}', {"k" * 256: 1}),
        ('{"zz":1,"b":2}', {"zz": 1, "b": 2}),
        (b'{"a":"\xc3\xa4"}', {"a": "ä"}),
        ('"\x7f\u2028"', "\x7f\u2028"),
    ],
)
def test_what_is_accepted_comes_back_as_it_is(text, value):
    result = read_json(text)
    assert repr(result) == repr(value)
    assert repr(decode(encode(result))) == repr(value)


def test_nesting_of_64_levels_is_accepted_and_65_is_not():
    assert read_json("[" * 64 + "]" * 64) == json.loads("[" * 64 + "]" * 64)
    error = refusal('{"a":' * 65 + "1" + "}" * 65)
    assert (error.code, error.path) == ("too_deep", f"$.{'a.' * 9}a….{'a.' * 4}a")
    assert read_json(json.dumps("[" * 1000)) == "[" * 1000
    assert len(read_json("[" + "[[]]," * 1000 + "[]]")) == 1001


@pytest.mark.parametrize(
    ("opening", "depth", "code"),
    [
        ("[", 1000, "too_deep"),
        ("[", 10_000, "too_deep"),
        ("[", 100_000, "too_deep"),
        ("[", 1_000_000, "too_many_tokens"),
        ('{"a":', 1000, "too_deep"),
        ('{"a":', 10_000, "too_deep"),
        ('{"a":', 200_000, "too_many_tokens"),
    ],
)
def test_any_depth_is_refused_without_a_crash(opening, depth, code):
    assert refusal(opening * depth).code == code


def test_the_size_is_limited_to_the_byte():
    assert read_json('"' + "x" * (2**20 - 2) + '"') == "x" * (2**20 - 2)
    error = refusal('"' + "x" * (2**20 - 1) + '"')
    assert (error.code, error.message) == (
        "too_large",
        "It is 1,048,577 bytes; the limit is 1,048,576 bytes.",
    )
    assert refusal('"ää"', limit=5).code == "too_large"
    assert read_json('"ä"', limit=4) == "ä"


def test_200_000_tokens_are_accepted_and_one_more_is_not():
    # n items and n-1 commas between two brackets
    text = "[" + ",".join(["0"] * 99_999) + "]"
    assert len(read_json(text)) == 99_999
    assert refusal("[" + ",".join(["0"] * 100_000) + "]").code == "too_many_tokens"
    assert refusal("[" + "[]," * 300_000 + "[]]").code == "too_many_tokens"
    assert len(read_json(json.dumps("," * 300_000))) == 300_000


def test_hostile_texts_of_the_full_size_are_refused_in_time():
    size = 2**20
    texts = ['"' + '\\"' * (size // 2 - 1), "[" * size, "[]," * (size // 3), '{"":' * (size // 4), " " * size]
    texts += [
        "[" + "1e5," * 40_000 + "NaN]",
        "-" * size,
        '"\\' * (size // 2),
        "[" + '"a",' * 49_000 + '"\\u0000"]',
    ]
    began = time.process_time()  # whoever else is busy does not count
    for text in texts:
        refusal(text)
    assert time.process_time() - began < 5


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.text('\x00\ud800\\u0"é')
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


@given(values)
def test_what_is_accepted_is_read_back_equal(value):
    """Accept ⇒ read_back == normal; whatever is refused, is refused by an InvalidJSON."""
    try:
        accepted = read_json(json.dumps(value))
    except InvalidJSON:
        return
    assert repr(accepted) == repr(value)
    assert repr(decode_strict(encode(accepted))) == repr(accepted)


@given(values)
def test_reader_and_writer_accept_the_same_values(value):
    text = json.dumps(value)
    assert is_accepted(read_json, text) == is_accepted(encode, value)


def is_accepted(function, value):
    try:
        function(value)
    except ValueError:
        return False
    return True


@given(st.text('[]{}",:0123456789eE+-.\\untrfalseNI ', max_size=40) | st.binary(max_size=20))
def test_garbage_is_read_as_python_does_or_refused(data):
    try:
        value = read_json(data)
    except InvalidJSON:
        return
    assert repr(value) == repr(json.loads(data))


@given(values)
def test_the_parser_that_knows_the_path_agrees_with_pythons(value):
    text = json.dumps(value, ensure_ascii=False)
    try:
        quick = read_json(text)
    except InvalidJSON:
        return
    assert repr(locate(text)) == repr(quick)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(
            "1" * 4301, "The integer does not fit in 64 bits. Pass it as a string.", id="4,301 digits"
        ),
        ("[" * 2000 + "]" * 2000, "The value is nested more than 64 levels deep."),
        ("NaN", "NaN and infinity are not valid JSON numbers."),
        ("{", "Expected a key in double quotes."),
    ],
)
def test_a_stored_text_that_is_none_of_ours_is_unreadable_and_breaks_nothing(text, reason):
    """A row that another path has written."""
    assert decode(text) == Unreadable(text, reason)
    with pytest.raises(InvalidJSON):
        decode_strict(text)


def test_a_stored_number_keeps_its_type():
    """What jsonb would change."""
    for value in (1e16, -0.0, 10**16, 0.1 + 0.2, 5e-324, math.pi):
        assert repr(decode(encode(value))) == repr(value)
