"""A secret that is used everywhere is found nowhere: in no table, file, log, page, frame of a socket or command."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import secrets
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit, urlunsplit

import psycopg
import pytest

from tests.chaos.browser import Browser
from tests.chaos.sockets import Socket, SocketClosedError
from tests.live import LiveStack
from tests.process import ledger
from tests.process.vault.notes import NOTES, noted
from tests.shifts import wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier, pytest.mark.long]

Database = psycopg.Connection[tuple[Any, ...]]

MOST_PAGES = 2_000
# Where nobody looks around: what changes something, what is no page of an instance, and the lists of instances and of
# errors in all their orders, spans and searches of several terms, of which there is no end; so are the tabs of an
# instance with several filters or opened steps, and all weeks but the present one. The links of a fragment are those of
# its page.
PASSED_BY = re.compile(
    r"^/(static|_f/joined|sign-out|theme)/|^/(instances|errors)/.*\?.*[+&]"
    r"|^/_f/live/\?topic=list.*&query=[^&]|^/_f/live/\?topic=error.*&.*&|^/_f/live/\?(?!topic=)"
    r"|^/workflows/[^?]*\?(?=.*\btab=).*&.*&|.*[?&](week|list)=|.*[?&]rows=.*[%&]"
)


class Canary:
    """A secret as it could be written anywhere."""

    def __init__(self) -> None:
        self.text = f"canary-{secrets.token_hex(12)}"
        raw = self.text.encode()
        self.digest = hashlib.sha256(raw).hexdigest()
        # In base64 it looks otherwise by where it begins.
        encoded = [base64.b64encode(b"x" * shift + raw).decode()[4:-4].encode() for shift in range(3)]
        self.forms = [raw, raw.hex().encode(), *encoded, *(form.translate(URL_SAFE) for form in encoded)]

    def is_in(self, data: bytes | str) -> bool:
        data = data.encode() if isinstance(data, str) else data
        return any(form in data for form in self.forms)


URL_SAFE = bytes.maketrans(b"+/", b"-_")


class Frames:
    """All that a tab is told by its socket."""

    def __init__(self, browser: Browser, topics: list[str]) -> None:
        self.texts: list[str] = []
        self._sockets = [Socket(browser, f"/ws/?topic={topic}") for topic in topics]
        for one in self._sockets:
            threading.Thread(target=self._listen, args=[one], daemon=True).start()

    def _listen(self, one: Socket) -> None:
        try:
            while True:
                self.texts.append(one.read())
        except (OSError, SocketClosedError):
            return

    def close(self) -> None:
        for one in self._sockets:
            one.__exit__()


@pytest.fixture
def stack(make_stack: Callable[..., LiveStack], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LiveStack:
    monkeypatch.setenv(ledger.VARIABLE, str(tmp_path / "ledger"))
    return make_stack(REPRISE_APPS="tests.process.vault", **{NOTES: str(tmp_path / "notes")}).start()


def test_a_secret_that_is_used_everywhere_is_found_nowhere(stack: LiveStack, tmp_path: Path) -> None:
    canary, notes = Canary(), tmp_path / "notes"
    browser = Browser("canary", stack.url, stack.account)
    browser.sign_in()
    login = {
        "user": "ada",
        "password": canary.text,
        "key": base64.b64encode(canary.text.encode()).decode(),
        "many": {"a": [canary.text]},
        "inner": {"held": [canary.text]},
    }
    with psycopg.connect(stack.dsn(), autocommit=True) as database:
        started = [start(browser, {**login, "fails": fails}) for fails in (False, True)]
        topics = [f"instance:{key_of(database, one)}" for one in started]
        frames = Frames(browser, [*topics, "home", "approvals", "list"])
        for one in started:
            give(browser, database, one, canary.text)
        kill_both(notes)
        for one in started:
            wait_for_end(database, one)
        restart(browser, database, started[0], notes)

        leaks = [name for name, text in pages(browser, stack, topics) if canary.is_in(text)]
        stranger = Browser("anonymous", stack.url, ("", ""))
        leaks += [name for name, text in pages(stranger, stack, topics) if canary.is_in(text)]
        leaks += [f"frame {number}" for number, text in enumerate(frames.texts) if canary.is_in(text)]
        leaks += [name for name, text in rows(database) if canary.is_in(text)]
        leaks += [name for name, text in commands(stack, started) if canary.is_in(text)]
    frames.close()
    stack.stop()
    leaks += [
        str(path) for path in stack.home.rglob("*") if path.is_file() and canary.is_in(path.read_bytes())
    ]
    leaks += ["notes"] * canary.is_in(notes.read_bytes())

    assert leaks == []
    assert len(frames.texts) > 5
    got = Counter(place for place, digest, _ in noted(notes) if digest == canary.digest)
    assert {digest for _, digest, _ in noted(notes)} == {canary.digest}
    places = ["params", "step", "output", "defined-step", "item", "child", "child-output", "event", "answer"]
    places += ["attempt-1", "attempt-2", "rollback-output", "rollback-argument"]
    assert set(got) == set(places)
    assert got["attempt-2"] == 3


def start(browser: Browser, login: dict[str, object]) -> str:
    page = browser.post("/workflows/vault/start/", params=json.dumps(login))
    assert page.status == 302, page.text
    return page.location.rstrip("/").rpartition("/")[2]


def kill_both(notes: Path) -> None:
    """Kill the workers that hang in a body with the secret in their hands."""
    wait_until(lambda: len(hanging(notes)) == 2, what="both bodies")
    for pid in set(hanging(notes)):
        os.kill(pid, signal.SIGKILL)


def give(browser: Browser, database: Database, one: str, secret: str) -> None:
    """Send the event and the answer that it waits for."""
    where = f"/workflows/vault/instances/{one}/"
    wait_until(lambda: waits_for(database, one, "event") > 0, what="the wait")
    payload = json.dumps({"pin": secret})
    assert browser.post(f"{where}events/", type="code-came", payload=payload).status == 302
    wait_until(lambda: waits_for(database, one, "request") > 0, what="the request")
    answer = {"answer/pin": secret, "answer/note": "seen"}
    seq = waits_for(database, one, "request")
    assert browser.post(f"{where}requests/{seq}/answer/", **answer).status == 302


def restart(browser: Browser, database: Database, one: str, notes: Path) -> None:
    """Run it again from a step, with all that came before from the record, and kill that worker, too."""
    fields = {"step": "do:hang:1", "reason": "once more", "generation": "1"}
    page = browser.post(f"/workflows/vault/instances/{one}/restart/", **fields)
    assert page.status == 302, page.text
    wait_until(lambda: len(hanging(notes)) == 3, what="the body")
    os.kill(hanging(notes)[-1], signal.SIGKILL)
    wait_for_end(database, one)


def hanging(notes: Path) -> list[int]:
    return [pid for place, _, pid in noted(notes) if place == "attempt-1"]


# Where it could be


def pages(browser: Browser, stack: LiveStack, topics: list[str]) -> Iterator[tuple[str, str]]:
    """Look at every page that leads on from the first one."""
    waiting = ["/", "/instances/", "/audit/", *(f"/_f/live/?topic={topic}" for topic in topics)]
    seen: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in seen or PASSED_BY.match(path):
            continue
        seen.add(path)
        assert len(seen) < MOST_PAGES, sorted(seen)
        page = browser.get(path)
        yield path, page.text
        links = re.findall(r'(?:href|data-copy-address|hx-get|action)="([^"#]+)', page.text)
        found = [urlsplit(urljoin(stack.url + path, link.replace("&amp;", "&"))) for link in links]
        waiting += [urlunsplit(("", "", *one[2:4], "")) for one in found if stack.url.endswith(one.netloc)]


def rows(database: Database) -> Iterator[tuple[str, str]]:
    tables = database.execute("SELECT relname FROM pg_stat_user_tables").fetchall()
    assert len(tables) > 10
    for (table,) in tables:
        yield f"table {table}", str(database.execute(f'SELECT t::text FROM "{table}" t').fetchall())


# One process for all: to start one takes longer than what it then does.
CALLS = """
import io, json
from django.core.management import call_command
said = {{}}
for one in {told}:
    out, err = io.StringIO(), io.StringIO()
    call_command(*one, stdout=out, stderr=err)
    said[" ".join(one)] = out.getvalue() + err.getvalue()
print(json.dumps(said, ensure_ascii=False))
"""


def commands(stack: LiveStack, started: list[str]) -> Iterator[tuple[str, str]]:
    told = [["list"], ["list", "workflows"], ["schedules", "list"]]
    for one in started:
        told += [["show", f"vault/{one}", "--full"], ["show", f"vault/{one}", "--full", "--generation", "1"]]
        told += [["events", "list", f"vault/{one}", "--full"]]
    told = [["workflow", *one, *form] for one in told for form in ([], ["--json"])]
    told += [["verify"], ["verify", "--json"], ["check"], ["dumpdata", "engine"]]
    said = json.loads(stack.django(CALLS.format(told=told)))
    assert len(said) == len(told)
    assert sum("••••••" in text for text in said.values()) > 5
    yield from said.items()


def key_of(database: Database, one: str) -> object:
    [(key,)] = database.execute("SELECT key FROM engine_instance WHERE id = %s", [one]).fetchall()
    return key


def status(database: Database, one: str) -> object:
    [(found,)] = database.execute("SELECT status FROM engine_instance WHERE id = %s", [one]).fetchall()
    return found


def waits_for(database: Database, one: str, kind: str) -> int:
    """Return the number of the step that waits; 0 if none does."""
    waiting = (
        "SELECT max(s.seq) FROM engine_step s JOIN engine_instance i ON i.key = s.instance_id"
        " WHERE i.id = %s AND s.kind = %s AND s.status = 'waiting'"
    )
    [(seq,)] = database.execute(waiting, [one, kind]).fetchall()
    return int(seq or 0)


def wait_for_end(database: Database, one: str) -> None:
    wait_until(lambda: status(database, one) in ("complete", "errored"), what=f"the end of {one}")
