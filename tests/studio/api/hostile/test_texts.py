"""Texts that no field, header, parameter or path takes: a 4xx that names the place, and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.studio.api.conftest import Program
from tests.studio.api.hostile.values import INSTANCES

LONG = "x" * 10_000
# Instance ids: what is no slug, or is too long.
IDS = [
    "",
    "x" * 101,
    "../../x",
    "a/b",
    "a\u202eb",
    "a ",
    "a\n",
    "Ⓐ",
    "{0}",
    "<script>",
    "😀",
    "-a",
    "a.b",
    LONG,
]
CONTROLS = ["a\u0001b", "a\u007fb", "a\u0085b", "a\nb"]
BLANK = ["", " ", "\u2003"]
TEXTS: dict[str, tuple[str, dict[str, Any], list[Any]]] = {
    # where: the address, the body around it, and what is refused
    "id": (INSTANCES, {}, [*IDS, 0, True, ["a"]]),
    "tags": (INSTANCES, {}, [[LONG], [""], [*map(str, range(51))], [1], [None], "a", {"a": 1}, [["a"]]]),
    "retention": (
        INSTANCES,
        {},
        [
            {"complete": text}
            for text in ("-1", "1e309", "nan", "1 fortnight", "１ hour", "1_000", "1h-5m", True)
        ]
        + [
            {"complete": -1},
            {"complete": 1e300},
            {"complete": [1]},
            {"running": "1d"},
            {LONG[:200]: 1},
            [],
            "1d",
        ],
    ),
    "type": (f"{INSTANCES}/one/events", {}, ["", "x" * 101, *CONTROLS, LONG, 1, None, "reprise:request:1:1"]),
    "dedup_key": (f"{INSTANCES}/one/events", {"type": "go"}, ["", LONG, 1, ["a"]]),
    "workflow": ("/events", {"id": "one", "type": "go"}, ["", "x" * 10_000, 1, None]),
    "from_step": (f"{INSTANCES}/done/restart", {"reason": "r"}, ["", LONG, "nowhere", 1, *CONTROLS]),
    "count": (f"{INSTANCES}/done/restart", {"reason": "r"}, [0, -1, 2**31, 2**63 - 1, "1", True, 1.5, None]),
    "kind": (f"{INSTANCES}/done/restart", {"reason": "r"}, ["", "DO", "Ⓐ", 1, None, ["do"]]),
    "rollback": (f"{INSTANCES}/one/terminate", {"reason": "r"}, ["yes", 1, None, "false", []]),
    "items": (f"{INSTANCES}/batch", {}, ["", {}, 1, None, [{}] * 101]),
}
ACTIONS = (
    "pause",
    "resume",
    "terminate",
    "restart",
    "retry-now",
    "wake-now",
    "retry-rollback",
    "retry-step",
    "accept-code",
    "events",
)


@pytest.mark.parametrize("field", TEXTS)
def test_texts_that_no_field_takes_are_refused_and_nothing_is_written(
    program: Program, known: None, rows: Callable[[], dict[str, int]], field: str
) -> None:
    path, body, values = TEXTS[field]
    before = rows()
    for value in values:
        answer = program.post(path, {**body, field: value})
        document = json.loads(answer.content)
        assert (answer.status_code, document["status"]) in ((422, 422), (404, 404)), (value, document)
        assert answer.status_code == 422 or field == "workflow"
        if answer.status_code == 422:
            assert document["errors"][0]["path"].split("/")[0] == field, (value, document)
        assert len(answer.content) < 4_000
    assert rows() == before


@pytest.mark.parametrize("action", ACTIONS)
def test_reasons_that_cannot_be_stored_do_nothing(
    program: Program, known: None, rows: Callable[[], dict[str, int]], action: str
) -> None:
    before = rows()
    body = {"type": "go"} if action == "events" else {}
    for reason in ("x" * 2_001, LONG * 10, 1, ["a"], None, {}):
        answer = program.post(f"{INSTANCES}/done/{action}", {**body, "reason": reason})
        document = json.loads(answer.content)
        assert (answer.status_code, document["errors"][0]["path"]) == (422, "reason"), (reason, document)
    assert rows() == before


@pytest.mark.parametrize(
    ("key", "status"),
    [("", 422), ("   ", 422), ("x" * 256, 422), (LONG, 422), ("a,b", 400), ("\x7f", 422), ("ä", 422)],
)
def test_idempotency_keys_that_cannot_be_stored_do_nothing(
    program: Program, known: None, rows: Callable[[], dict[str, int]], key: str, status: int
) -> None:
    before = rows()
    answer = program.post(f"{INSTANCES}/one/pause", Idempotency_Key=key)
    assert (answer.status_code, json.loads(answer.content)["code"]) == (status, "invalid_idempotency_key")
    assert rows() == before


MATCHES = ["", "x", '"', LONG, 'W/"nothing"', "*" * 100, '"1\xff"', ",,,,"]


@pytest.mark.parametrize("tag", MATCHES)
def test_states_that_no_instance_was_in_do_nothing(
    program: Program, known: None, rows: Callable[[], dict[str, int]], tag: str
) -> None:
    before = rows()
    answer = program.post(f"{INSTANCES}/one/pause", If_Match=tag)
    assert (answer.status_code, json.loads(answer.content)["code"]) == (412, "stale")
    assert rows() == before


# Addresses

LISTS = (
    "/instances",
    "/audit",
    "/requests",
    f"{INSTANCES}/one/steps",
    f"{INSTANCES}/one/events",
    f"{INSTANCES}/one/logs",
)
QUERIES = [
    *("limit=0", "limit=-1", "limit=1000000", "limit=", "limit=x", "limit=1e309", "limit=nan", "limit=5.5"),
    *("limit=99999999999999999999", "limit=%00", "limit=%ff", "limit=１&cursor=%ff"),
    *(
        "cursor=-1",
        "cursor=",
        "cursor=99999999999999999999",
        "cursor=9223372036854775808",
        "cursor=١",
        "cursor=1e3",
    ),
    *("cursor=%00", "cursor=' OR 1=1--", f"cursor={LONG}"),
    *(
        "page=-1",
        "order=password",
        "filter[user__password__startswith]=a",
        "user__password=a",
        "%00=1",
        "%ff=1",
    ),
]
OF_INSTANCES = [
    *("status=nope", "status=%00", "status=", "workflow=%00", "tag=%00", "q=%00", f"q={LONG}", f"tag={LONG}"),
    *("created_after=infinity", "created_after=10000-01-01T00:00:00Z"),
    *("created_after=2026-02-30T00:00:00Z", "created_after=2026-01-01", "created_after=2026-01-01T00:00:00"),
    *(
        "created_before=1e309",
        "created_before=nan",
        "created_before=%00",
        "created_before=NaN",
    ),
    *("created_after=0000-00-00", f"created_after={LONG}"),
]
OF_AUDIT = [
    "person=%00",
    "verb=%00",
    "outcome=nope",
    "workflow=%00",
    "id=%00",
    "since=infinity",
    "until=nan",
]
# Odd, but nothing that could be wrong: the lists are searched.
FINE = [
    *(
        "q=(",
        "q=^(a%2B)%2B$",
        "q=%25",
        "q=_",
        "q=%ff",
        "q=\\",
        "q=%F0%9F%98%80",
        "tag=%ff",
        "tag='",
        "workflow=..",
    ),
    *("created_after=2026-01-01T00:00:00%2B14:00", "cursor=999999999999999999", "limit=200", "cursor=0", ""),
    *("created_after=0001-01-01T00:00:00Z", "created_after=9999-12-31T23:59:59-14:00"),
    *("created_after=9998-12-31T23:59:59Z", "created_before=1970-01-02T00:00:00Z"),
]


@pytest.mark.parametrize("path", LISTS)
def test_queries_that_no_list_takes_are_refused(program: Program, known: None, path: str) -> None:
    more = {"/instances": OF_INSTANCES, "/audit": OF_AUDIT}.get(path, [])
    for query in [*QUERIES, *more]:
        answer = program.get(f"{path}?{query}")
        document = json.loads(answer.content)
        assert answer.status_code == 422, (query, document)
        assert document["errors"]
        assert len(answer.content) < 4_000


def test_odd_queries_find_nothing(program: Program, known: None) -> None:
    for query in FINE:
        answer = program.get(f"/instances?{query}")
        assert answer.status_code == 200, (query, answer.content)


NAMES_IN_PATHS = [
    *(
        "a%00b",
        "%ff",
        "%2e%2e",
        "..",
        "a%2fb",
        "a%0ab",
        "a%0a",
        "a;b",
        "Ⓐ",
        "<script>",
        "x" * 101,
        "x" * 1_500,
    ),
    *("0%0d%0aSet-Cookie:x=1", "one%20", "ONE", "%F0%9F%98%80"),
]


@pytest.mark.parametrize(
    "path",
    [
        "/workflows/{}",
        "/workflows/{}/instances",
        "/workflows/{}/instances/one",
        "/workflows/sink/instances/{}",
        "/workflows/sink/instances/{}/pause",
        "/workflows/sink/instances/one/{}",
        "/workflows/sink/instances/one/steps/{}",
        "/workflows/sink/instances/one/payloads/{}",
        "/schedules/sink/{}/run",
        "/schedules/{}/x/run",
        "/{}",
    ],
)
def test_names_that_nothing_has_are_not_found(
    program: Program, known: None, rows: Callable[[], dict[str, int]], path: str
) -> None:
    before = rows()
    for name in NAMES_IN_PATHS:
        for method in ("GET", "POST") if len(name) < 10 else ("POST",):
            answer = program.send(method, path.replace("{}", name), {} if method == "POST" else None)
            assert answer["Content-Type"] == "application/problem+json", (name, answer.content[:200])
            assert answer.status_code in (404, 405), (name, answer.content)
            assert name not in answer.content.decode() or len(name) < 4
    assert rows() == before


@pytest.mark.parametrize("number", ["0", "-1", "999999999", "9999999999", "1.5", "١", "1e3", "0x1", "%00"])
def test_numbers_that_no_step_has_are_not_found(program: Program, known: None, number: str) -> None:
    for path in (f"steps/{number}", f"steps/{number}/payloads/output"):
        assert program.get(f"{INSTANCES}/one/{path}").status_code == 404
    assert program.post(f"{INSTANCES}/one/requests/{number}/answer", {"answer": 1}).status_code == 404


def test_addresses_of_ten_thousand_characters_are_too_long(program: Program) -> None:
    for method in ("GET", "POST", "DELETE", "PATCH"):
        answer = program.send(method, f"/workflows/{LONG}")
        assert (answer.status_code, json.loads(answer.content)["code"]) == (414, "address_too_long")
