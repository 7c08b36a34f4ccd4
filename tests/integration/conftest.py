"""What the tests of the engine's doors share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
import pytest
from django.db import connection, connections
from django.utils import timezone

from engine.models import Instance

T = TypeVar("T")


def row_of(**values: Any) -> Instance:
    """Write an instance's row as it is given, past the doors."""
    given = {"workflow": "tick", "id": "one", "params": {}, "wake_at": timezone.now(), **values}
    return Instance.objects.create(**given)


def leased(instance: Instance, *, status: str = "running", seat: int = 7) -> Instance:
    """Let a worker hold the instance."""
    lease = timezone.now() + timezone.timedelta(seconds=30)
    Instance.objects.filter(key=instance.key).update(status=status, waiting_for="", owner=seat, wake_at=lease)
    return instance.refresh()


def together(count: int, work: Callable[[int], T]) -> list[T | Exception]:
    """Run `work` in that many threads at once, each with a connection of its own; errors are results too."""

    def one(number: int) -> T | Exception:
        try:
            return work(number)
        except Exception as problem:
            return problem
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


class Hints:
    """Hears what is notified from now on."""

    def __init__(self, listener: psycopg.Connection[Any]) -> None:
        self._listener = listener

    def heard(self) -> list[tuple[str, str]]:
        """Return the hints that have come since the last call, as (channel, payload)."""
        self._listener.execute("SELECT 1")
        return [(hint.channel, hint.payload) for hint in self._listener.notifies(timeout=0.05)]


@pytest.fixture
def hints(transactional_db: None) -> Iterator[Hints]:
    """Listen on both channels, on a connection of its own."""
    settings = connection.get_connection_params()
    wanted = {
        key: settings[key] for key in ("host", "port", "user", "password", "dbname") if settings.get(key)
    }
    with psycopg.connect(**wanted, autocommit=True) as listener:
        listener.execute("LISTEN engine_wake")
        listener.execute("LISTEN engine_changed")
        yield Hints(listener)


@contextmanager
def blocked(count: int = 1, seconds: float = 5) -> Iterator[None]:
    """After the block, wait until that many other sessions of this database wait for a lock."""
    yield
    with connection.cursor() as cursor:
        for _ in range(int(seconds / 0.01)):
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            if cursor.fetchone()[0] >= count:
                return
            cursor.execute("SELECT pg_sleep(0.01)")
    raise AssertionError("nobody came to wait for a lock")
