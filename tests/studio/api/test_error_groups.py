"""Groups of errors over HTTP: pages, decisions, and who may see and decide what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from engine import failures
from engine.models import Audit
from studio.client import AsyncClient, Client, NotAllowedError, NotFoundError
from tests.docs.served import serving
from tests.studio.api.conftest import Program, Programs
from tests.studio.api.shop import NO_MAIL, NO_PAPER, Shop

pytestmark = pytest.mark.django_db

MAIL, PAPER = f"/errors/{NO_MAIL}", f"/errors/{NO_PAPER}"
UNKNOWN = "/errors/0123456789abcdef"
ADDRESS = "https://studio.example.org"


def get(program: Program, path: str, status: int = 200) -> Any:
    answer = program.get(path)
    assert answer.status_code == status, answer.content
    return json.loads(answer.content)


def test_groups_come_page_by_page_and_by_state(shop: Shop, program: Program) -> None:
    every = get(program, "/errors?state=all")["groups"]
    assert len(every) == 4
    found, cursor = [], ""
    while True:
        page = get(program, f"/errors?state=all&limit=1{cursor}")
        found += page["groups"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert found == every
    assert [one["fingerprint"] for one in get(program, "/errors?state=resolved")["groups"]] == [NO_PAPER]
    assert NO_PAPER not in [one["fingerprint"] for one in get(program, "/errors")["groups"]]
    assert [one["fingerprint"] for one in get(program, "/errors?query=MAIL+server")["groups"]] == [NO_MAIL]
    for wrong in ("cursor=1", "state=closed", "limit=0", "order=x"):
        assert get(program, f"/errors?{wrong}", 422)["code"] == "invalid_request"


def test_a_group_has_its_latest_failure_and_its_instances(shop: Shop, program: Program) -> None:
    found = get(program, PAPER)
    assert (found["group"]["errored"], found["latest"]["id"]) == (1, "label-5")
    assert found["latest"]["error"] == {"type": "OSError", "message": "The printer is out of paper."}
    assert "Traceback" in get(program, f"{PAPER}?full=true")["latest"]["error"]["traceback"]
    page = get(program, f"{MAIL}/instances?which=retrying")
    assert [one["id"] for one in page["instances"]] == [shop.retrying.id]
    assert (page["errored"], page["retrying"], page["went_on"]) == (0, 1, 0)
    assert get(program, f"{MAIL}/instances")["instances"] == []
    for unit, bars in (("day", 14), ("hour", 24), ("minutes", 20)):
        assert len(get(program, f"{MAIL}/trend?unit={unit}")["trend"]) == bars


def test_the_search_finds_the_instances_of_a_group(shop: Shop, program: Program) -> None:
    found = get(program, f"/instances?query=error-group:{NO_MAIL}")
    assert ([one["id"] for one in found["instances"]], found["searched"]["rows"]) == (
        [shop.retrying.id],
        None,
    )
    wrong = get(program, "/instances?query=error-group:4711", 422)
    assert (wrong["code"], wrong["errors"][0]["path"]) == ("invalid_query", "query")


def test_what_does_not_exist_is_not_found_and_neither_is_what_may_not_be_seen(
    shop: Shop, program: Program, program_of: Programs
) -> None:
    narrow = program_of("operator", workflows=["print-*"])
    assert [one["fingerprint"] for one in get(narrow, "/errors?state=all")["groups"]] == [NO_PAPER]
    for who, path in ((program, UNKNOWN), (narrow, MAIL)):
        for part in ("", "/instances", "/trend", "/shares"):
            assert get(who, f"{path}{part}", 404)["code"] == "failure_not_found"
        for act in ("resolve", "ignore", "reopen"):
            assert who.post(f"{path}/{act}", {"reason": "x"}).status_code == 404
    assert get(program, "/errors/4711", 404)["code"] == "not_found"
    assert not Audit.objects.filter(verb__startswith="error-", outcome="denied").exists()
    assert failures.group(NO_MAIL).state == "open"


def test_a_denied_decision_is_recorded_and_changes_nothing(shop: Shop, program_of: Programs) -> None:
    viewer = program_of("viewer")
    for act in ("resolve", "ignore"):
        answer = viewer.post(f"{MAIL}/{act}", {"reason": "x"})
        assert (answer.status_code, json.loads(answer.content)["code"]) == (403, "not_allowed")
    rows = Audit.objects.filter(outcome="denied").order_by("key")
    assert [(one.verb, one.workflow, one.data) for one in rows] == [
        ("error-resolve", "send-receipt", {"error": NO_MAIL}),
        ("error-ignore", "send-receipt", {"error": NO_MAIL}),
    ]
    assert failures.group(NO_MAIL).state == "open"


def test_a_group_is_ignored_with_a_reason_until_a_moment_to_come(shop: Shop, program: Program) -> None:
    answer = program.post(f"{MAIL}/ignore", {"reason": " "})
    assert (answer.status_code, json.loads(answer.content)["code"]) == (422, "reason_required")
    for body, path in (
        ({"until": "2020-01-01T00:00:00Z"}, "until"),
        ({"until": "2099-01-01T00:00:00"}, "until"),
        ({"count": 0}, "count"),
        ({"for": "7d"}, "for"),
    ):
        answer = program.post(f"{MAIL}/ignore", {"reason": "x", **body})
        assert answer.status_code == 422
        assert [one["path"] for one in json.loads(answer.content)["errors"]] == [path]
    answer = program.post(f"{MAIL}/ignore", {"reason": "x", "until": "2099-01-01T00:00:00+02:00", "count": 5})
    group = json.loads(answer.content)["group"]
    assert (group["state"], group["ignored_until"], group["ignored_count"]) == (
        "ignored",
        "2098-12-31T22:00:00+00:00",
        5,
    )


def test_a_decision_is_made_once_for_each_key(shop: Shop, program: Program) -> None:
    for _ in range(2):
        answer = program.post(f"{MAIL}/resolve", {"reason": "x"}, Idempotency_Key="one")
        assert answer.status_code == 200
    assert Audit.objects.filter(verb="error-resolve", workflow="send-receipt").count() == 1


@pytest.fixture
def loop(shop: Shop) -> Iterator[Any]:
    with serving(ADDRESS) as found:
        yield found


def test_both_clients_read_and_decide(loop: Any, program: Program, program_of: Programs) -> None:
    with Client(ADDRESS, program.token) as studio:
        assert [one["fingerprint"] for one in studio.error_groups(workflow="send-receipt")] == [NO_MAIL]
        found = studio.error_group(NO_MAIL)
        assert found["group"]["last_seen"] <= found["now"]
        assert [one["id"] for one in studio.error_group_instances(NO_MAIL, which="retrying")] == ["receipt-3"]
        assert sum(bar["failures"] for bar in studio.error_group_trend(NO_MAIL, unit="hour")) == 1
        assert studio.error_group_shares(NO_MAIL) == []
        ignored = studio.ignore_error_group(
            NO_MAIL, reason="x", until=found["now"].replace(year=2099), count=3
        )
        assert (ignored["state"], ignored["ignored_count"]) == ("ignored", 3)
        assert studio.reopen_error_group(NO_MAIL)["state"] == "open"
        with pytest.raises(NotFoundError):
            studio.error_group("0123456789abcdef")

    async def later() -> str:
        async with AsyncClient(ADDRESS, program.token) as studio:
            found = [one["fingerprint"] async for one in studio.error_groups(workflow="send-receipt")]
            return (await studio.resolve_error_group(found[0], reason="x"))["state"]

    assert loop.run(later()) == "resolved"
    with Client(ADDRESS, program_of("viewer").token) as studio, pytest.raises(NotAllowedError):
        studio.reopen_error_group(NO_MAIL)
