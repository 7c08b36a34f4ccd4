"""Several sessions of the database at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
from django.db import connection, connections

T = TypeVar("T")


def together(count: int, work: Callable[[int], T]) -> list[T | Exception]:
    """Run `work` in that many threads at once, each with a connection of its own; errors are answers too."""

    def one(number: int) -> T | Exception:
        try:
            return work(number)
        except Exception as problem:  # noqa: BLE001 - the test looks at it
            return problem
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def in_background(work: Callable[[], T]) -> Callable[[], T | Exception]:
    """Begin `work` in another session; return a function that waits for its result."""
    pool = ThreadPoolExecutor(1)
    answer = pool.submit(lambda: together(1, lambda number: work())[0])
    pool.shutdown(wait=False)
    return answer.result


def until_blocked(seconds: float = 60) -> None:
    """Wait until another session waits for a lock."""
    with connection.cursor() as cursor:
        for _ in range(int(seconds / 0.01)):
            cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted), pg_sleep(0.01)")
            if cursor.fetchone()[0]:
                return
    raise AssertionError("Nobody came to wait for a lock.")


class Hints:
    """Receives notifications from now on."""

    def __init__(self, listener: psycopg.Connection[Any]) -> None:
        self._listener = listener

    def heard(self) -> list[tuple[str, str]]:
        """Return the hints that have come since the last call, as (channel, payload)."""
        return [(hint.channel, hint.payload) for hint in self._listener.notifies(timeout=0.05)]
