"""A session that is killed at each statement and commit in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest
from django.db import Error, connection, connections

from engine.models.connection import parameters


class _Cut:
    """Kills the session at its nth statement or commit: before it, or after, so that only the answer is lost."""

    def __init__(self, nth: int, *, after: bool) -> None:
        self.nth, self.after, self.count = nth, after, 0

    @contextmanager
    def once(self) -> Iterator[None]:
        self.count += 1
        if self.count != self.nth:
            yield
            return
        if self.after:
            yield
        pid = connection.connection.info.backend_pid
        with psycopg.connect(**parameters(), autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        if not self.after:
            yield
        raise psycopg.OperationalError("the answer is lost")

    def statement(self, execute: Any, *args: Any) -> Any:
        with connection.wrap_database_errors, self.once():
            return execute(*args)


def cut_everywhere(work: Callable[[int], object], *, after: bool) -> int:
    """Repeat the work, each time cut one statement later, until it is not cut; return how many were.

    After each cut the work is done again, whole. It is given the number of its turn, from 1, and may raise what the
    database raises.
    """
    backend = type(connections["default"])
    commit = backend._commit
    turn = 0
    while True:
        turn += 1
        cut = _Cut(turn, after=after)

        def cut_commit(self: Any, cut: _Cut = cut) -> Any:
            with connection.wrap_database_errors, cut.once():
                return commit(self)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(backend, "_commit", cut_commit)
            with suppress(Error), connection.execute_wrapper(cut.statement):
                work(turn)
        connection.close()
        work(turn)
        if cut.count < turn:
            return turn - 1
