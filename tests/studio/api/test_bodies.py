"""Bodies: what is read, what is refused, and where it says what is wrong."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client, override_settings

from engine.models import Instance
from tests.sample.workflows import tick
from tests.studio import factories
from tests.studio.api.conftest import PREFIX, Program

pytestmark = pytest.mark.django_db

ORDERS = "/workflows/process-order/instances"
TICK = "/workflows/tick/instances"
ITEMS = [{"sku": "pen", "quantity": 1}]


def wrong(answer: HttpResponse) -> tuple[int, str, list[str]]:
    found = json.loads(answer.content)
    return answer.status_code, found["code"], [one["path"] for one in found.get("errors", [])]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"params": {"customer": 3, "items": ITEMS}}, (422, "invalid_params", ["params/customer"])),
        (
            {"params": {"customer": "Ada", "items": [{"sku": "pen", "quantity": "x"}]}},
            (422, "invalid_params", ["params/items/0/quantity"]),
        ),
        ({"params": {"customer": "A", "items": ITEMS}, "id": "a/b"}, (422, "invalid_name", ["id"])),
        ({"params": {"customer": "A", "items": ITEMS}, "id": 5}, (422, "invalid_request", ["id"])),
        ({"params": {"customer": "A", "items": ITEMS}, "tags": ["a", ""]}, (422, "invalid_name", ["tags"])),
        ({"params": {"customer": "A", "items": ITEMS}, "tags": "eu"}, (422, "invalid_request", ["tags"])),
        (
            {"params": {"customer": "A", "items": ITEMS}, "tags": ["a", 1]},
            (422, "invalid_request", ["tags/1"]),
        ),
        ({"params": {"customer": "A", "items": ITEMS}, "reason": "x" * 2001}, (422, "limit", ["reason"])),
        ({"parms": {}, "Id": "x"}, (422, "invalid_request", ["parms", "Id"])),
        ({"id": "x"}, (422, "invalid_params", ["params"])),
    ],
)
def test_a_start_names_every_wrong_field(program: Program, body: Any, expected: Any) -> None:
    assert wrong(program.post(ORDERS, body)) == expected
    assert not Instance.objects.exists()


@pytest.mark.parametrize(
    "retention",
    [
        {"complete": "1 fortnight"},
        {"complete": -1},
        {"done": "7d"},
        {"complete": True},
        {"complete": "7d", "x": None},
    ],
)
def test_a_start_with_a_wrong_retention(program: Program, retention: Any) -> None:
    answer = program.post(TICK, {"retention": retention})
    assert answer.status_code == 422
    assert [one["path"].split("/")[0] for one in json.loads(answer.content)["errors"]] == ["retention"]


@pytest.mark.parametrize(
    ("action", "body", "path"),
    [
        ("pause", {"reason": 3}, "reason"),
        ("pause", {"reason": None}, "reason"),
        ("pause", {"because": "x"}, "because"),
        ("terminate", {"reason": "x", "rollback": "yes"}, "rollback"),
        ("terminate", {"reason": "x", "rollback": 1}, "rollback"),
        ("terminate", {"reason": "  "}, "reason"),
        ("restart", {"reason": "x", "count": "1"}, "count"),
        ("restart", {"reason": "x", "count": 1.0}, "count"),
        ("restart", {"reason": "x", "count": True}, "count"),
        ("restart", {"reason": "x", "count": 0}, "count"),
        ("restart", {"reason": "x", "kind": "nap"}, "kind"),
        ("restart", {}, "reason"),
        ("restart/preview", {"reason": "x"}, "reason"),
        ("events", {}, "type"),
        ("events", {"type": ""}, "type"),
        ("events", {"type": "x" * 101}, "type"),
        ("events", {"type": 1}, "type"),
        ("events", {"type": "a", "dedup_key": ""}, "dedup_key"),
        ("requests/1/answer", {}, "answer"),
        ("requests/1/answer", {"answer": {"refund": "perhaps", "amount": 1}}, "answer/refund"),
        ("requests/1/answer", {"answer": None, "comment": "x" * 2001}, "comment"),
        ("restart", {"reason": "x", "from_step": "never"}, "from_step"),
    ],
)
def test_an_action_names_the_wrong_field(program: Program, action: str, body: Any, path: str) -> None:
    instance = factories.instance("waiting", workflow="process-order")
    factories.request(instance)
    status, _, paths = wrong(program.post(f"{ORDERS}/{instance.id}/{action}", body))
    assert (status, paths) == (422, [path])
    assert (instance.refresh().status, instance.generation) == ("waiting", 1)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", (400, "invalid_json", [""])),
        (b'{"params": {"a": 1}}x', (400, "invalid_json", [""])),
        (b"\xff", (400, "invalid_json", [""])),
        (b'\xef\xbb\xbf{"id": "a"}', (400, "invalid_json", [""])),
        ('{"id": "a"}'.encode("utf-16"), (400, "invalid_json", [""])),
        (b"{'id': 'a'}", (400, "invalid_json", [""])),
    ],
)
def test_what_is_no_json_is_refused_with_its_position(program: Program, body: bytes, expected: Any) -> None:
    """F14"""
    answer = program.post(TICK, body)
    assert wrong(answer)[:2] == expected[:2]
    assert "line 1, column" in answer.content.decode()


@pytest.mark.parametrize(
    "body",
    [
        b'{"id": "a\\u0000b"}',
        b'{"tags": ["\\ud800"]}',
        b'{"params": NaN}',
        b'{"params": 1e400}',
        b'{"params": ' + b"9" * 4301 + b"}",
        b'{"params": ' + b"[" * 1000 + b"]" * 1000 + b"}",
        b'{"params": 1, "params": 2}',
        b"[]",
        b"null",
        b'"x"',
        b"1",
    ],
)
def test_hostile_json_is_refused(program: Program, body: bytes) -> None:
    """F1-F9, F13"""
    assert program.post(TICK, body).status_code in (400, 422)
    assert not Instance.objects.exists()


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 201),
        ("application/json; charset=utf-8", 201),
        ("APPLICATION/JSON;charset=nonsense", 201),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/xml", 415),
        ("", 415),
    ],
)
def test_only_json_is_read(program: Program, kind: str, status: int) -> None:
    """E29: another page can send the other types without asking."""
    headers = {"Authorization": f"Bearer {program.token}"}
    answer = Client().generic("POST", PREFIX + TICK, b'{"tags": ["a"]}', kind, headers=headers)
    assert answer.status_code == status
    assert Instance.objects.count() == (status == 201)


def test_encoded_bodies_are_refused(program: Program) -> None:
    """E43: a small one may unpack to gigabytes."""
    for encoding in ("gzip", "br", "deflate", "gzip, identity"):
        answer = program.post(TICK, gzip.compress(b"{}"), Content_Encoding=encoding)
        assert (answer.status_code, wrong(answer)[1]) == (415, "encoded_body")
    assert program.post(TICK, b"{}", Content_Encoding="identity").status_code == 201


@override_settings(REPRISE={"MAX_BODY_BYTES": 65_536}, DATA_UPLOAD_MAX_MEMORY_SIZE=1_000)
def test_our_limit_counts_and_not_that_of_the_site(program: Program) -> None:
    room = 65_536 - len(b'{"tags":[],"reason":""}')
    assert program.post(TICK, b'{"tags":[],"reason":""}' + b" " * room).status_code == 201
    answer = program.post(TICK, b'{"tags":[],"reason":""}' + b" " * (room + 1))
    assert (answer.status_code, wrong(answer)[1]) == (413, "body_too_large")


@pytest.mark.parametrize("count", [100, 101])
def test_a_batch_has_a_hundred_at_most(program: Program, count: int) -> None:
    answer = program.post(f"{TICK}/batch", {"items": [{"id": f"i-{n}"} for n in range(count)]})
    assert answer.status_code == (200 if count == 100 else 422)
    assert Instance.objects.count() == (100 if count == 100 else 0)
    if count == 101:
        assert wrong(answer) == (422, "limit", ["items"])


@pytest.mark.parametrize(
    ("body", "facts"),
    [
        ({"tags": [str(n) for n in range(51)]}, {"value": 51, "limit": 50}),
        ({"retention": {"complete": -1}}, {"place": "$"}),
        (b'{"params":\n {"a": "\\u0000"}}', {"place": "$.params.a", "line": 2, "column": 8}),
        ({"id": "a/b"}, {}),
    ],
)
def test_a_problem_has_the_numbers_of_its_sentence(
    program: Program, body: Any, facts: dict[str, Any]
) -> None:
    found = json.loads(program.post(TICK, body).content)
    own = {"type", "title", "status", "code", "detail", "errors"}
    assert {key: value for key, value in found.items() if key not in own} == facts


def test_conflicts_have_codes(program: Program) -> None:
    instance = tick.start(id="one")
    where = f"{TICK}/one"
    assert wrong(program.post(TICK, {"id": "one"}))[:2] == (409, "id_in_use")
    assert wrong(program.send("DELETE", where, {"reason": "x"}))[:2] == (409, "instance_not_finished")
    assert wrong(program.post(f"{where}/retry-rollback"))[:2] == (409, "rollback_not_failed")
    assert wrong(program.post(f"{where}/retry-now"))[:2] == (409, "nothing_to_retry")
    assert wrong(program.post(f"{where}/wake-now"))[:2] == (409, "nothing_to_wake")
    instance.pause()
    assert wrong(program.post(f"{where}/retry-now"))[:2] == (409, "instance_paused")
    assert wrong(program.post(f"{where}/wake-now"))[:2] == (409, "instance_paused")
    restart = {"reason": "x", "from_step": "never"}
    assert wrong(program.post(f"{where}/restart", restart))[:2] == (422, "step_not_found")
    assert wrong(program.post(f"{where}/requests/1/answer", {"answer": 1}))[:2] == (404, "request_not_found")
    assert wrong(program.get(f"{where}?generation=2"))[:2] == (404, "generation_not_found")
    instance.terminate()
    for action in ("terminate", "events", "accept-code"):
        body = {"type": "paid"} if action == "events" else {"reason": "x"}
        assert wrong(program.post(f"{where}/{action}", body))[:2] == (409, "instance_finished")


def test_code_that_is_not_here_names_no_other_workflow(program: Program) -> None:
    gone = factories.instance("paused", workflow="gone")
    answer = program.post(f"/workflows/gone/instances/{gone.id}/accept-code")
    assert wrong(answer)[:2] == (409, "unknown_workflow")
    assert "process-order" not in answer.content.decode()
    assert program.post("/workflows/gone/instances").status_code == 404
