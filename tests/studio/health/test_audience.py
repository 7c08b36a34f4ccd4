"""Who sees the details of `/readyz` by a token, and that a token never makes a probe fail."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import LazySettings
from django.contrib.auth import get_user_model
from django.db import connections
from django.http import HttpRequest
from django.test import Client

from engine.status.health import Facts, Health
from studio.access import anonymous_queue, tokens
from studio.access.anonymous_queue import AnonymousQueue
from studio.access.people import in_thread
from studio.health.readiness import details, readiness
from studio.server import probes
from tests.studio import factories
from tests.studio.api.conftest import Program
from tests.studio.health.test_probes import ask

pytestmark = pytest.mark.django_db(transaction=True)

STRANGER = "203.0.113.9"
READY = Health(True, (), Facts(1, 2, 128, 3, None, 0, None, None, 0, 0, 0, 0, 0))
PLAIN = {"status": "ready"}
UNKNOWN = f"rpr_{'a' * 8}_{'b' * 43}"
INVALID = 'Bearer realm="reprise", error="invalid_token"'

Answer = tuple[int, Any, str | None]  # status, document, WWW-Authenticate


@pytest.fixture(autouse=True)
def _ready(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for question in (readiness, details):
        monkeypatch.setattr(question, "_asked", None)
        monkeypatch.setattr(question, "_read", lambda: READY)
    anonymous_queue._known.clear()
    yield
    for question in (readiness, details):
        question._asked = None


def token(*workflows: str) -> str:
    return tokens.issue("probe", by=factories.person("admin"), workflows=workflows or ("*",)).text


def told(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story, and close what its threads have opened."""

    async def whole() -> None:
        try:
            await asyncio.wait_for(story(), 60)
        finally:
            await in_thread(connections.close_all)
            await sync_to_async(connections.close_all)()

    asyncio.run(whole())


async def read(text: str, **options: Any) -> Answer:
    header = (b"authorization", text.encode())
    status, headers, body = await ask("/readyz", headers=(header,), **options)
    return status, json.loads(body), headers.get("www-authenticate")


def in_front(text: str) -> Answer:
    """Ask the server in front of Django."""
    found: list[Answer] = []

    async def story() -> None:
        found.append(await read(text))

    told(story)
    return found[0]


def by_view(text: str) -> Answer:
    answer = Client().get("/readyz", REMOTE_ADDR=STRANGER, headers={"Authorization": text})
    return answer.status_code, answer.json(), answer.get("WWW-Authenticate")


BOTH = pytest.mark.parametrize("answer_to", [in_front, by_view])
AnswerTo = Callable[[str], Answer]


@BOTH
class TestToken:
    def test_for_all_workflows_sees_what_the_api_says(self, answer_to: AnswerTo) -> None:
        text = token()
        status, document, challenge = answer_to(f"Bearer {text}")
        assert (status, document["workers"], challenge) == (200, 2, None)
        health = Program(text).get("/health").json()  # type: ignore[attr-defined]
        assert document.keys() == {"status", *health}

    def test_for_some_workflows_sees_no_numbers_of_others(self, answer_to: AnswerTo) -> None:
        challenge = 'Bearer realm="reprise", error="insufficient_scope"'
        assert answer_to(f"Bearer {token('order')}") == (200, PLAIN, challenge)

    def test_that_is_unknown_revoked_or_broken_makes_no_probe_fail(self, answer_to: AnswerTo) -> None:
        revoked = token()
        tokens.revoke(tokens.Token.objects.get(), by=factories.person("admin"))
        for text in (revoked, UNKNOWN, "x", "rpr_\xff", "x" * 4000, f"{revoked},Bearer {revoked}"):
            assert answer_to(f"Bearer {text}") == (200, PLAIN, INVALID)

    @pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", "Basic dTpw", "Negotiate", UNKNOWN])
    def test_other_credentials_are_not_looked_at(
        self, answer_to: AnswerTo, given: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("studio.health.audience.authenticate", lambda request: pytest.fail("asked"))
        assert answer_to(given) == (200, PLAIN, None)

    def test_over_its_rate_gets_the_plain_answer(self, answer_to: AnswerTo, settings: LazySettings) -> None:
        settings.REPRISE = {**settings.REPRISE, "API_RATE": 2}
        text = f"Bearer {token()}"
        found = [answer_to(text) for _ in range(3)]
        assert ["workers" in document for _, document, _ in found] == [True, True, False]
        assert found[2] == (200, PLAIN, None)

    def test_of_an_unready_studio_is_not_looked_up(
        self, answer_to: AnswerTo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(readiness, "_read", lambda: Health(False, ("Away.",), None))
        monkeypatch.setattr("studio.health.audience.authenticate", lambda request: pytest.fail("asked"))
        assert answer_to(f"Bearer {UNKNOWN}") == (503, {"status": "not ready", "reason": "Away."}, None)


class ByBasic:
    """An authentication of the project."""

    def __call__(self, request: HttpRequest) -> Any:
        if request.headers["Authorization"] == "Basic broken":
            raise RuntimeError("a defect of the project")
        return get_user_model().objects.get(username="maria")


@BOTH
def test_the_projects_own_authentication_counts_and_its_defects_fail_no_probe(
    answer_to: AnswerTo, settings: LazySettings
) -> None:
    settings.REPRISE = {**settings.REPRISE, "API_AUTH": [f"{__name__}.ByBasic"]}
    factories.person("viewer", "maria")
    assert answer_to("Basic maria")[1]["workers"] == 2
    assert answer_to("Basic broken") == (200, PLAIN, None)
    assert answer_to("") == (200, PLAIN, None)


def test_probes_with_a_token_count_once_a_second_together() -> None:
    asked: list[int] = []
    details._read = lambda: asked.append(1) or READY  # type: ignore[func-returns-value]
    text = token()

    async def story() -> None:
        found = await asyncio.gather(*(read(f"Bearer {text}") for _ in range(30)))
        assert {document["workers"] for _, document, _ in found} == {2}

    began = time.monotonic()
    told(story)
    assert len(asked) <= 1 + time.monotonic() - began


class TestGuessing:
    def test_unknown_tokens_are_checked_one_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As at the API: many at once gain nothing, and those that come too many get the plain answer at once."""
        inside, most = 0, 0
        lock = threading.Lock()
        before = probes.audience_of

        def counting(request: HttpRequest) -> Any:
            nonlocal inside, most
            with lock:
                inside += 1
                most = max(most, inside)
            try:
                return before(request)
            finally:
                with lock:
                    inside -= 1

        monkeypatch.setattr(probes, "audience_of", counting)

        async def story() -> None:
            found = await asyncio.gather(*(read(f"Bearer {UNKNOWN}") for _ in range(150)))
            assert {(status, document["status"]) for status, document, _ in found} == {(200, "ready")}
            assert {challenge for _, _, challenge in found} == {None, INVALID}

        told(story)
        assert most == 1

    def test_a_flood_of_strangers_delays_no_known_token_and_no_plain_probe(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = token()

        async def busy(scope: Any, receive: Any, send: Any) -> None:
            await asyncio.Event().wait()

        async def story() -> None:
            assert "workers" in (await read(f"Bearer {text}"))[1]
            queue = AnonymousQueue(busy, lambda scope: True)
            scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": ["10.0.0.1", 1]}
            nothing: Any = None
            flood = [asyncio.create_task(queue(dict(scope), nothing, nothing)) for _ in range(40)]
            await asyncio.sleep(0)
            # The turn is taken, and does not end: who is unknown waits for it, but not for long.
            with monkeypatch.context() as patch:
                patch.setattr(probes, "TOKEN_TIMEOUT", timedelta(seconds=0.1))
                assert await read(f"Bearer {UNKNOWN}") == (200, PLAIN, None)
            assert (await read(f"Bearer {text}"))[1]["workers"] == 2
            assert (await ask("/readyz"))[0] == 200
            for task in flood:
                task.cancel()
            await asyncio.gather(*flood, return_exceptions=True)

        told(story)


def test_a_token_that_a_probe_has_sent_waits_for_nobody_at_the_api() -> None:
    text = token()
    in_front(f"Bearer {text}")
    assert anonymous_queue.is_known({"headers": [(b"authorization", f"Bearer {text}".encode())]})


def test_a_content_type_that_django_cannot_read_fails_no_probe() -> None:
    async def story() -> None:
        given = ((b"authorization", b"Bearer x"), (b"content-type", b"a/b; c*=nothing''x"))
        assert (await ask("/readyz", headers=given))[0] == 200

    told(story)
