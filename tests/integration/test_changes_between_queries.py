"""A read of what is new is several queries. What commits between two of them comes whole after the read, or in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from engine.models import Instance, Step
from engine.status.changes import Change, End, Kind
from tests.integration.rows import NOW, row_of, step_of
from tests.integration.test_changes import Reader, another, begin, commit, log_of, messages

pytestmark = pytest.mark.django_db(transaction=True)

SNAPSHOT = 2  # the query that takes it; the one before sets the isolation
LAST = 10  # of an instance that runs
LAST_OF_ENDED = 9  # neither its open steps nor its workers are read


@contextmanager
def before_query(number: int, act: Callable[[], object]) -> Iterator[None]:
    """Act when this connection is about to send its query of this number."""
    sent = 0

    def execute(run: Callable[..., Any], *args: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent == number:
            act()
        return run(*args)

    with connection.execute_wrapper(execute):
        yield
    assert number <= sent <= LAST, f"a read has {sent} queries: test what commits before each of them"


def steps(changes: list[Change]) -> list[str]:
    return [change.document["status"] for change in changes if change.kind is Kind.STEP]


def states(changes: list[Change]) -> list[str]:
    return [change.document["status"] for change in changes if change.kind is Kind.INSTANCE]


def finish(instance: Instance) -> None:
    """Write what comes with the end, as an older transaction than the one that commits first."""
    begin()
    Step.objects.update(status="complete", finished_at=NOW)
    log_of(instance, "last words")
    Instance.objects.update(status="complete", wake_at=None, finished_at=NOW)


@pytest.mark.parametrize("gap", range(SNAPSHOT, LAST + 1))
def test_an_end_never_comes_before_what_committed_with_it(gap: int) -> None:
    instance = row_of()
    step_of(instance)
    reader = Reader(instance)
    with another() as older:
        older(lambda: finish(instance))
        log_of(instance, "overtakes")
        with before_query(gap, lambda: older(commit)):
            first = reader.page()
    then = reader.page()

    read = [[*first.changes], [*then.changes]]
    told = [(steps(one), messages(one), states(one)) for one in read]
    if gap == SNAPSHOT:
        assert told[0] == (["complete"], ["last words", "overtakes"], ["complete"])
        assert told[1] == ([], [], [])
        assert first.end == End("complete", 1)
    else:
        assert told[0] == (["running"], ["overtakes"], ["queued"])
        assert told[1] == (["complete"], ["last words"], ["complete"])
        assert first.end is None
    assert then.end == End("complete", 1)


@pytest.mark.parametrize("gap", range(SNAPSHOT, LAST_OF_ENDED + 1))
def test_a_deletion_during_a_read_comes_after_what_was_read(gap: int) -> None:
    instance = row_of(status="complete", wake_at=None, finished_at=NOW)
    step_of(instance, status="complete", finished_at=NOW)
    log_of(instance, "last words")
    reader = Reader(instance)
    with another() as other, before_query(gap, lambda: other(lambda: instance.delete(by="ada"))):
        first = reader.page()

    if gap == SNAPSHOT:
        assert (first.changes, first.end) == ((), End(None, None))
    else:
        assert (messages([*first.changes]), first.end) == (["last words"], End("complete", 1))
    assert reader.page().end == End(None, None)
