"""A secret that programs send to the API, and their token, are found nowhere: in no answer, table, file or page."""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.chaos.browser import Browser
from tests.live import LiveStack
from tests.platform.programs import Answer, Program, program
from tests.process import ledger
from tests.process.test_secret_canary import (
    Canary,
    Database,
    commands,
    hanging,
    key_of,
    pages,
    rows,
    wait_for_end,
    waits_for,
)
from tests.process.vault.notes import NOTES, noted
from tests.shifts import wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier, pytest.mark.long]

VAULT = "/workflows/vault/instances"
ONE = f"{VAULT}/one"
READ = [
    *(
        "/me",
        "/workflows",
        "/workflows/vault",
        "/instances",
        "/instances?status=finished",
        "/requests",
        "/audit",
        "/workers",
    ),
    *(
        f"{ONE}?full=true&limit=200",
        ONE,
        f"{ONE}/steps",
        f"{ONE}/events",
        f"{ONE}/children",
        f"{ONE}/generations",
    ),
    *(f"{ONE}/logs", f"{ONE}/audit", f"{ONE}/requests", f"{ONE}/payloads/params", f"{ONE}/payloads/output"),
    f"{ONE}/payloads/error",
]


@pytest.fixture
def stack(make_stack: Callable[..., LiveStack], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LiveStack:
    monkeypatch.setenv(ledger.VARIABLE, str(tmp_path / "ledger"))
    return make_stack(REPRISE_APPS="tests.process.vault", **{NOTES: str(tmp_path / "notes")}).start()


def test_a_secret_that_a_program_sends_is_found_nowhere(stack: LiveStack, tmp_path: Path) -> None:
    canary, notes = Canary(), tmp_path / "notes"
    sender = program(stack, role="operator", verbs=("view", "operate", "approve"))
    said: list[Answer] = []
    login = {
        "user": "ada",
        "password": canary.text,
        "key": base64.b64encode(canary.text.encode()).decode(),
        "many": {"a": [canary.text]},
        "inner": {"held": [canary.text]},
    }
    with psycopg.connect(stack.dsn(), autocommit=True) as database:
        said += mistakes(sender, canary.text)
        said += twice(sender, VAULT, {"id": "one", "params": login, "reason": "to look"}, 201)
        give(sender, database, canary.text, said)
        wait_until(lambda: len(hanging(notes)) == 1, what="the body")
        os.kill(hanging(notes)[0], signal.SIGKILL)
        wait_for_end(database, "one")
        said += twice(sender, f"{ONE}/restart", {"reason": "again", "from_step": "hang"}, 200)
        wait_until(lambda: len(hanging(notes)) == 2, what="the body")
        os.kill(hanging(notes)[-1], signal.SIGKILL)
        wait_for_end(database, "one")

        read = {path: sender.ask("GET", path) for path in [*READ, *steps_of(database)]}
        assert {answer.status for answer in read.values()} <= {200, 404}
        leaks = [path for path, answer in read.items() if canary.is_in(answer.body)]
        leaks += [f"answer {number}" for number, answer in enumerate(said) if canary.is_in(answer.body)]
        leaks += [
            name for name, text in everywhere(stack, database) if canary.is_in(text) or sender.token in text
        ]
    stack.stop()
    files = [(path, path.read_bytes()) for path in [*stack.home.rglob("*"), notes] if path.is_file()]
    leaks += [str(path) for path, data in files if canary.is_in(data) or sender.token.encode() in data]

    assert leaks == []
    assert sum("••••••" in answer.body.decode() for answer in read.values()) > 5
    assert {digest for _, digest, _ in noted(notes)} == {canary.digest}
    assert {"params", "step", "event", "answer", "attempt-1", "attempt-2"} <= {
        place for place, _, _ in noted(notes)
    }


def mistakes(sender: Program, secret: str) -> list[Answer]:
    """Send the secret where it does not fit, or is no JSON: the refusal must not repeat it."""
    wrong: list[Any] = [
        {"params": {"user": "ada", "password": [secret]}},
        {"params": {"user": "ada", "password": {"a": secret}, "unknown": secret}},
        {"params": {"user": [secret], "password": secret}},
        {"params": {"user": "ada", "password": secret, "key": f"{secret}!"}},
        {"params": {"user": "ada", "password": secret, "many": secret}},
        {"params": {"password": secret, "fails": secret}},
        {"params": {"user": "ada", "password": secret}, "retention": {"complete": "x"}},
        f'{{"params": {{"user": "ada", "password": "{secret}"}},}}'.encode(),
        f'{{"params": {{"user": "ada", "password": "{secret}\\u0000"}}}}'.encode(),
        f'{{"params": {{"password": "{secret}"'.encode(),
    ]
    answers = [
        sender.ask("POST", VAULT, body, b"Idempotency-Key: wrong%d" % n) for n, body in enumerate(wrong)
    ]
    assert {one.status for one in answers} <= {400, 422}
    batch = {"items": [body for body in wrong if isinstance(body, dict)]}
    answers.append(sender.ask("POST", f"{VAULT}/batch", batch))
    assert answers[-1].document["created"] == []
    return answers


def twice(sender: Program, path: str, body: Any, status: int) -> list[Answer]:
    """Send a request and repeat it: the second answer is read from the table of keys."""
    key = f"Idempotency-Key: {path.rpartition('/')[2]}".encode()
    answers = [sender.ask("POST", path, body, key) for _ in range(2)]
    assert [one.status for one in answers] == [status, status], answers
    return answers


def give(sender: Program, database: Database, secret: str, said: list[Answer]) -> None:
    """Send the event and the answer that it waits for, also as they are not expected."""
    wait_until(lambda: waits_for(database, "one", "event") > 0, what="the wait")
    event = {"type": "code-came", "payload": {"pin": secret}, "dedup_key": "code"}
    said.append(sender.ask("POST", f"{ONE}/events", event | {"payload": {"pin": [secret]}}))
    assert said[-1].status == 422
    said += twice(sender, f"{ONE}/events", event, 202)
    said.append(sender.ask("POST", f"{ONE}/events", event | {"payload": {"pin": secret, "note": "other"}}))
    assert said[-1].status == 409
    wait_until(lambda: waits_for(database, "one", "request") > 0, what="the request")
    where = f"{ONE}/requests/{waits_for(database, 'one', 'request')}/answer"
    said.append(sender.ask("POST", where, {"answer": {"pin": [secret], "note": secret}}))
    assert said[-1].status == 422
    said += twice(sender, where, {"answer": {"pin": secret, "note": "seen"}}, 200)
    said.append(sender.ask("POST", where, {"answer": {"pin": secret, "note": "late"}}))


def steps_of(database: Database) -> list[str]:
    found = database.execute("SELECT DISTINCT seq FROM engine_step ORDER BY seq").fetchall()
    return [
        f"{ONE}/steps/{seq}{more}" for (seq,) in found for more in ("", "/payloads/output", "/payloads/error")
    ]


def everywhere(stack: LiveStack, database: Database) -> Iterator[tuple[str, str]]:
    """Look at all tables, pages and commands."""
    yield from rows(database)
    person = Browser("admin", stack.url, stack.account)
    person.sign_in()
    yield from pages(person, stack, [f"instance:{key_of(database, 'one')}", "home", "list"])
    yield from commands(stack, ["one"])
