"""The Studio while its database is away: it says so at once, and is back by itself."""

from __future__ import annotations

import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message

import pytest
from django.conf import settings
from django.db import connections

from tests.live import free_port
from tests.process.arena import Arena, wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

PATIENCE = 15.0  # of a person on a busy machine; a page that hangs tells nothing


@pytest.fixture
def studio(arena: Arena) -> Iterator[str]:
    """The web process alone, without the supervisor that would start the database again."""
    port = free_port()
    variables = {"REPRISE_ROLE": "web", "PORT": str(port)}
    web = arena.launch("-m", "daphne", "-p", str(port), "studio.asgi:application", variables=variables)
    address = f"http://127.0.0.1:{port}/instances/"
    wait_until(lambda: answers(address), what="the Studio")
    yield address
    web.send_signal(signal.SIGTERM)
    web.wait(60)


def get(address: str) -> tuple[int, Message, str]:
    # Somebody who was here before: whether that holds, the database knows.
    request = urllib.request.Request(
        address, headers={"Cookie": f"{settings.SESSION_COOKIE_NAME}={32 * 'f'}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def answers(address: str) -> bool:
    try:
        return get(address)[0] == 200
    except (urllib.error.URLError, ConnectionError):
        return False


def test_pages_say_that_the_database_is_away_and_come_back_by_themselves(arena: Arena, studio: str) -> None:
    arena.server.stop()
    connections["default"].close()
    for _ in range(2):  # so long that a pool would try seldom
        asked_at = time.monotonic()
        status, headers, page = get(studio)
        assert (status, headers["Retry-After"]) == (503, "5")
        assert "The database is not responding" in page
        assert time.monotonic() - asked_at < PATIENCE

    arena.server.start()

    wait_until(lambda: answers(studio), seconds=PATIENCE, what="the page")
