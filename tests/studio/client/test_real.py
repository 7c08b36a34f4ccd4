"""The clients, and `reprise workflow`, against a real daphne, database and cluster."""

from __future__ import annotations

import asyncio
import logging
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from studio.client import (
    AsyncClient,
    Client,
    ConflictError,
    InvalidError,
    NotAllowedError,
    NotAuthenticatedError,
    NotFoundError,
    StreamEvent,
)
from studio.client.operations import making
from tests.live import PROJECT, LiveStack

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

ORDER = {"customer": "Ada", "items": [{"sku": "pen", "quantity": 2}]}

# Prints tokens for the tests: one that may do everything, and one that may only look at one workflow.
ISSUE = """
from django.contrib.auth.models import User
from studio.access import tokens
from studio.access.token_rules import GIVABLE
from studio.access.permissions import Verb
admin = User.objects.get(username="admin")
for name, verbs, workflows in (("all", GIVABLE, ("*",)), ("look", (Verb.VIEW,), ("tick",))):
    print(tokens.issue(f"{name} RUN", by=admin, owner=None, verbs=verbs, workflows=workflows).text)
"""


@pytest.fixture(scope="module")
def issued(live_stack: LiveStack) -> list[str]:
    # Names of their own: a worker that is given more of these tests later sets them up once more.
    return live_stack.django(ISSUE.replace("RUN", secrets.token_hex(4))).split()


@pytest.fixture
def client(live_stack: LiveStack, issued: list[str]) -> Iterator[Client]:
    with Client(live_stack.url, issued[0]) as made:
        yield made


def test_a_workflow_is_started_steered_and_followed_to_its_end(client: Client) -> None:
    started = client.start("process-order", ORDER, id="journey", tags=["eu"], reason="why")
    assert (started["workflow"], started["id"], started["tags"]) == ("process-order", "journey", ["eu"])
    sent = client.send_event("process-order", "journey", "order-approved", {"approved": True}, dedup_key="k")
    again = client.send_event("process-order", "journey", "order-approved", {"approved": True}, dedup_key="k")
    assert sent["event"]["type"] == "order-approved"
    assert sent["event"]["received_at"] == again["event"]["received_at"]
    ended = client.wait("process-order", "journey", timeout=60)
    assert (ended["status"], ended["params"]["customer"]) == ("complete", "Ada")
    assert client.payload("process-order", "journey", "output") == ended["output"]
    names = [step["name"] for step in client.steps("process-order", "journey")]
    assert names == ["cool-down", "approval", "reserve"]
    assert client.step("process-order", "journey", 1)["step"]["name"] == "reserve"
    assert [event["payload"] for event in client.events("process-order", "journey")] == [
        {"approved": True, "comment": ""}
    ]
    assert [action["verb"] for action in client.actions("process-order", "journey")][-1] == "start"
    assert list(client.children("process-order", "journey")) == []
    assert isinstance(list(client.logs("process-order", "journey")), list)
    plan = client.preview_restart("process-order", "journey", from_step="reserve")
    assert (plan["generation"], plan["runs_again"][0]["name"]) == (2, "reserve")
    with pytest.raises(ConflictError):
        client.terminate("process-order", "journey", reason="too late")
    assert client.restart("process-order", "journey", reason="again", from_step="reserve")["generation"] == 2
    assert [one["number"] for one in client.generations("process-order", "journey")] == [1]
    assert client.terminate("process-order", "journey", reason="enough")["instance"]["status"] == "terminated"
    assert client.delete("process-order", "journey", reason="gone") == {
        "workflow": "process-order",
        "id": "journey",
    }
    with pytest.raises(NotFoundError):
        client.instance("process-order", "journey")


def test_an_instance_is_followed_to_its_end_and_from_a_cursor(client: Client) -> None:
    client.start("process-order", ORDER, id="followed")
    seen: list[StreamEvent] = []
    for event in client.subscribe("process-order", "followed"):
        seen.append(event)
        if event.type == "step" and event.data["name"] == "approval" and event.data["status"] == "waiting":
            client.send_event("process-order", "followed", "order-approved", {"approved": True})
    assert (seen[-1].type, seen[-1].data["status"]) == ("end", "complete")
    kinds = [one.type for one in seen]
    assert {"step", "attempt", "event", "instance", "action", "end"} <= set(kinds)
    middle = len(seen) // 2
    rest = list(client.subscribe("process-order", "followed", cursor=seen[middle].id))
    assert [(one.type, one.data) for one in rest][-1] == ("end", seen[-1].data)
    assert len(rest) < len(seen)
    only = list(client.subscribe("process-order", "followed", types=["attempt"]))
    assert {one.type for one in only} == {"attempt", "end"}
    assert list(client.subscribe("process-order", "followed", cursor=seen[-1].id)) == []


async def test_the_async_client_follows_too(live_stack: LiveStack, issued: list[str]) -> None:
    async with AsyncClient(live_stack.url, issued[0]) as client:
        await client.start("tick", id="followed-async")
        seen = [event.type async for event in client.subscribe("tick", "followed-async")]
    assert seen[-1] == "end"


def test_an_action_with_an_old_etag_is_refused(client: Client) -> None:
    client.start("nap", {"seconds": 3600}, id="etag")
    seen = client.instance("nap", "etag")["etag"]
    client.pause("nap", "etag")
    with pytest.raises(ConflictError) as caught:
        client.resume("nap", "etag", if_match=seen)
    assert (caught.value.status, caught.value.code) == (412, "stale")
    fresh = client.instance("nap", "etag")["etag"]
    assert client.terminate("nap", "etag", reason="done", if_match=fresh)["has_changed"] is True


def test_a_request_is_answered_by_its_number(client: Client) -> None:
    client.start("ask-addresses", id="asked")
    while not (asked := list(client.requests(workflow="ask-addresses", id="asked"))):
        pass  # the cluster is on its way to the question
    assert (asked[0]["name"], asked[0]["message"], asked[0]["may_answer"]) == ("addresses", "Where to?", True)
    assert [one["id"] for one in client.requests(workflow="ask-addresses", mine=True)] == ["asked"]
    with pytest.raises(InvalidError):
        client.answer("ask-addresses", "asked", asked[0]["seq"], {"wrong": 1})
    client.terminate("ask-addresses", "asked", reason="done")


def test_an_instance_is_paused_and_resumed(client: Client) -> None:
    client.start("nap", {"seconds": 3600}, id="paused-by-client")
    assert client.pause("nap", "paused-by-client", reason="lunch")["has_changed"] is True
    found = client.instances(workflow="nap", status=["paused", "waiting_for_pause"])
    assert "paused-by-client" in [one["id"] for one in found]
    assert client.resume("nap", "paused-by-client")["has_changed"] is True
    client.terminate("nap", "paused-by-client", reason="done")


def test_a_batch_is_iterated_across_pages(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    items: list[Any] = [{"id": f"batch-{number}", "params": {"seconds": 3600}} for number in range(5)]
    done = client.start_batch("nap", [*items, {"id": "batch-0", "params": {"seconds": 1}}])
    assert [one["id"] for one in done["created"]] == [f"batch-{number}" for number in range(5)]
    assert [(one["index"], one["code"]) for one in done["errors"]] == [(5, "id_in_use")]
    monkeypatch.setattr(making, "PAGE", 2)
    with caplog.at_level(logging.INFO, "httpx2"):
        found = [one["id"] for one in client.instances(workflow="nap", q="batch-")]
    assert sum("cursor=" in record.getMessage() for record in caplog.records) >= 2, caplog.text
    assert found == [f"batch-{number}" for number in (4, 3, 2, 1, 0)]
    verbs = [one["verb"] for one in client.audit(workflow="nap", verb="start")]
    assert len(verbs) >= 5
    for name in found:
        client.terminate("nap", name, reason="done")


def test_wrong_params_are_named_with_their_path(client: Client) -> None:
    with pytest.raises(InvalidError) as caught:
        client.start("process-order", {"customer": "Ada", "items": [{"sku": "pen", "quantity": 0}]})
    assert [(one["path"], one["message"]) for one in caught.value.errors] == [
        ("params/items/0/quantity", "Input should be greater than 0")
    ]


def test_a_retried_start_is_one_instance(client: Client) -> None:
    first = client.start("tick", idempotency_key="the-same")
    assert client.start("tick", idempotency_key="the-same")["id"] == first["id"]


def test_what_a_token_may_not_do_is_refused(live_stack: LiveStack, issued: list[str]) -> None:
    with Client(live_stack.url, issued[1]) as client:
        assert (client.me()["verbs"], client.me()["workflows"]) == (["view"], ["tick"])
        assert [one["name"] for one in client.workflows()["workflows"]] == ["tick"]
        with pytest.raises(NotAllowedError):
            client.start("tick")
        with pytest.raises(NotFoundError):
            client.workflow("nap")
        with pytest.raises(NotAllowedError):
            client.health()
    with Client(live_stack.url, "rpr_unknown") as client, pytest.raises(NotAuthenticatedError):
        client.me()


def test_operators_questions_are_answered(client: Client) -> None:
    assert client.health(max_due=3600)["is_healthy"] is True
    assert {one["role"] for one in client.workers()} == {"cluster", "shift"}
    assert client.workflow("tick")["workflow"]["is_declared"] is True
    assert list(client.schedules()) == client.schedules_page()["schedules"]
    assert list(client.requests(workflow="tick")) == []


async def test_the_async_client_does_the_same_side_by_side(live_stack: LiveStack, issued: list[str]) -> None:
    async with AsyncClient(live_stack.url, issued[0]) as client:
        started = await asyncio.gather(*(client.start("tick", id=f"aside-{n}") for n in range(5)))
        ended = await asyncio.gather(*(client.wait("tick", one["id"], timeout=60) for one in started))
        assert [one["status"] for one in ended] == ["complete"] * 5
        found = [one["id"] async for one in client.instances(workflow="tick", q="aside-")]
        assert sorted(found) == sorted(one["id"] for one in started)


def test_one_client_serves_several_threads(client: Client) -> None:
    ended: list[str] = []

    def run(number: int) -> None:
        started = client.start("tick", id=f"thread-{number}")
        ended.append(client.wait("tick", started["id"], timeout=60)["status"])

    threads = [threading.Thread(target=run, args=[number]) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended == ["complete"] * 5


def test_the_installed_command_works_in_any_folder(
    live_stack: LiveStack, issued: list[str], tmp_path: Path
) -> None:
    elsewhere = {"REPRISE_URL": live_stack.url, "REPRISE_TOKEN": issued[0]}

    def run(*words: str) -> tuple[int, str, str]:
        program = [sys.executable, "-c", "from studio.command.main import main; main()", "workflow", *words]
        path = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT)}
        done = _run(program, tmp_path, path | elsewhere)
        return done.returncode, done.stdout, done.stderr

    def run_here(*words: str, **more: str) -> tuple[int, str, str]:
        program = [sys.executable, str(PROJECT / "manage.py"), "workflow", *words]
        done = _run(program, PROJECT, live_stack.variables | more)
        return done.returncode, done.stdout, done.stderr

    assert run("start", "tick", "--id", "shell") == (0, "Started tick/shell.\n", "")
    with Client(**dict(zip(("base_url", "token"), elsewhere.values(), strict=True))) as client:
        client.wait("tick", "shell", timeout=60)
    assert run("terminate", "tick/shell", "--reason", "late") == run_here(
        "terminate", "tick/shell", "--reason", "late"
    )
    for words in (["show", "tick/none"], ["restart", "tick/shell", "--preview"], ["replay", "tick/shell"]):
        here, there = run_here(*words), run(*words)
        assert there == (here if words[0] != "replay" else there)
        assert run_here(*words, **elsewhere) == there
    assert run("replay", "tick/shell")[0] == 2
    code, out, _ = run("show", "tick/shell")
    assert (code, out.splitlines()[0]) == (0, "tick/shell  complete")
    assert not list(tmp_path.iterdir())


def _run(program: list[str], folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        program,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
