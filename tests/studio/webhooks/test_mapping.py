"""What is taken from a payload: paths, headers and constants, and nothing that runs."""

from __future__ import annotations

from typing import Any

import pytest

from studio.webhooks.mapping import MappingError, Written, take, unmet
from studio.webhooks.refusals import DeliveryError
from studio.webhooks.sources import MISSING, Given, SourceError, joined, source_of

NO_SOURCES = [
    *(
        "",
        "action",
        "$.action",
        "$..*",
        "{{ action }}",
        "/a~2",
        "/~",
        "= {",
        "= two words",
        "header",
        "header é",
    ),
    *("header Authorization", "header X-Hub-Signature-256", "header Cookie", "header X-Api-Key"),
    *("/a" * 33, "/" + "a" * 500),
]

# The document and the values of RFC 6901, section 5.
RFC = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("body", RFC),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/m~0n", 8),
    ],
)
def test_paths_are_those_of_the_rfc(pointer: str, value: Any) -> None:
    assert source_of(pointer).of(Given(RFC, {})) == value


@pytest.mark.parametrize(
    "pointer", ["/foo/2", "/foo/-", "/foo/01", "/foo/-1", "/foo/x", "/bar", "/a~1b/c", "/foo/０"]
)
def test_what_is_not_there_is_missing(pointer: str) -> None:
    assert source_of(pointer).of(Given(RFC, {})) is MISSING


def test_null_is_a_value() -> None:
    assert source_of("/a").of(Given({"a": None}, {})) is None


@pytest.mark.parametrize("text", NO_SOURCES)
def test_other_texts_are_no_sources(text: str) -> None:
    with pytest.raises(SourceError):
        source_of(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("= paid", "paid"),
        ('= "two words"', "two words"),
        ("= 3", 3),
        ("= null", None),
        ('= {"a": [1]}', {"a": [1]}),
    ],
)
def test_constants_are_json_or_a_word(text: str, value: Any) -> None:
    assert source_of(text).of(Given(None, {})) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [("x", "order-x"), (4711, "order-4711"), (True, None), (1.5, None), (None, None), ([], None), ({}, None)],
)
def test_texts_are_joined_from_texts_and_whole_numbers(value: Any, text: str | None) -> None:
    found = joined("= order- + /id").of(Given({"id": value}, {}))
    assert found == text if text is not None else found is MISSING


def test_an_object_is_put_together_line_by_line() -> None:
    rules = Written(payload="id: /order/id\nkind: = web\nnote: /order/note\nhook: header X-Hook-Id").read()
    assert rules.headers == {"x-hook-id"}
    taken = take(rules, Given({"order": {"id": 7}}, {"x-hook-id": "h"}))
    assert taken.payload == {"id": 7, "kind": "web", "hook": "h"}


def test_one_path_is_the_whole_value() -> None:
    assert take(Written(payload="/order").read(), Given({"order": [1]}, {})).payload == [1]
    assert take(Written().read(), Given({"order": [1]}, {})).payload == {"order": [1]}


def test_tags_that_are_missing_are_left_out() -> None:
    rules = Written(tags="= github\n/label\n= nr- + /number\n/label").read()
    assert take(rules, Given({"number": 3}, {})).tags == ("github", "nr-3")


@pytest.mark.parametrize("field", ["id", "type", "dedup"])
def test_what_is_needed_must_be_there(field: str) -> None:
    with pytest.raises(DeliveryError) as caught:
        take(Written(**{field: "/nothing"}).read(), Given({}, {}))
    assert (caught.value.status, caught.value.code) == (422, "missing_value")


@pytest.mark.parametrize(
    ("condition", "payload", "holds"),
    [
        ("/action = opened, closed", {"action": "closed"}, True),
        ("/action = opened, closed", {"action": "edited"}, False),
        ("/action = opened", {}, False),
        ("/draft = false", {"draft": False}, True),
        ("/draft = false", {"draft": 0}, False),
        ("/n = 1", {"n": True}, False),
        ("/n = 1", {"n": "1"}, False),
        ("/n = null", {"n": None}, True),
        ("/n = null", {}, False),
        ("header X-GitHub-Event = push", {}, True),
        ("/a = 1\n/b = 2", {"a": 1, "b": 2}, True),
        ("/a = 1\n/b = 2", {"a": 1, "b": 3}, False),
    ],
)
def test_conditions_compare_and_do_nothing_else(condition: str, payload: Any, holds: bool) -> None:
    rules = Written(only_if=condition).read()
    assert (unmet(rules, Given(payload, {"x-github-event": "push"})) == "") is holds


@pytest.mark.parametrize(
    ("given", "field", "line"),
    [
        ({"only_if": "/action"}, "only_if", "Line 1"),
        ({"only_if": "/a = 1\n/b == 2"}, "only_if", "Line 2"),
        ({"only_if": "/a = ^(a+)+$"}, "only_if", "Line 1"),
        ({"payload": "id /a"}, "payload", "Line 1"),
        ({"payload": "id: /a\nid: /b"}, "payload", "Line 2"),
        ({"tags": "/a\nb"}, "tags", "Line 2"),
        ({"id": "x"}, "id", "not a source"),
        ({"tags": "/a\n" * 51}, "tags", "50 lines"),
    ],
)
def test_a_wrong_line_is_named(given: dict[str, str], field: str, line: str) -> None:
    with pytest.raises(MappingError, match=line) as caught:
        Written(**given).read()
    assert caught.value.field == field
