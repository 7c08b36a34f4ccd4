"""Every two of the things that can be done to an instance, one held at its row while the other comes.

Two sessions: the first does its part and keeps the row until the second waits for it. Whatever they are, both answer,
the trail tells one story, and a worker can drive what is left to its end.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from engine import EventTimeoutError, RepriseError, RollbackContext, WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.invariants import INVARIANTS, look
from engine.models import Attempt, Audit, Instance, Step
from engine.replay.records.history import AttemptRecord, StepRecord
from engine.replay.records.writes import Leave, Writes
from engine.steer import requests, retention
from engine.worker.database import claim_sql, flush_sql, rows, sql
from tests.shifts import running_shift, wait_until

pytestmark = pytest.mark.second_tier

NOBODY = 1_000_001  # the id of a worker that does not live
OPEN = ("queued", "running", "waiting", "waiting_for_pause", "paused")

Act = Callable[[Instance], object]

ACTIONS: dict[str, Act] = {
    "pause": lambda one: one.pause(),
    "resume": lambda one: one.resume(),
    "terminate": lambda one: one.terminate(),
    "terminate, rolling back": lambda one: one.terminate(rollback=True),
    "restart": lambda one: one.restart(),
    "restart from a step": lambda one: one.restart("go", kind="event"),
    "delete": lambda one: one.delete(),
    "send an event": lambda one: one.send_event("other", by="ada"),
    "answer": lambda one: requests.answer(one, "ask", True, by="ada"),
    "accept the code": lambda one: one.accept_code(),
    "retry the rollback": lambda one: one.retry_rollback(),
    "wake now": lambda one: one.wake_now(),
    "retention": lambda one: retention.sweep(now=timezone.now() + timedelta(days=1)),
}
# A state in which it does something.
STATES = {
    "resume": "paused",
    "delete": "complete",
    "retry the rollback": "failed",
    "wake now": "sleeping",
    "retention": "complete",
}
NAPPING = ("running", "sleeping")
AT_ONCE = {"complete": 0, "errored": 0, "terminated": 0}


async def at_most(wait: Awaitable[object]) -> None:
    with suppress(EventTimeoutError):
        await wait


@pytest.fixture
def story(engine_db: None, own_registry: None) -> Workflow[str, None]:
    def undo(ctx: RollbackContext) -> None:
        if ctx.attempt == 1:
            raise ValueError("not yet")

    once = {"max_attempts": 1}

    @workflow(retention=None)
    async def raced(step: WorkflowStep, params: str) -> None:
        await step.do("a", str, rollback=undo, rollback_options=once)
        if params == "works":
            await step.sleep("nap", "1h")
        else:
            await at_most(step.wait_for_event("go", timeout="1h"))
        if params == "fails":
            await step.fail("told to")
        if params == "asks":
            await at_most(step.request("ask", bool, message="?", timeout="1h"))
        if params != "ends":
            await step.do("b", str)

    return raced


class Second:
    """Another session, and who works in it."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._pid = self._pool.submit(self._ask_pid).result()

    def _ask_pid(self) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            [pid] = cursor.fetchone()
        return int(pid)

    def begin(self, work: Callable[[], object]) -> Future[object]:
        return self._pool.submit(work)

    def until_it_waits_or_is_done(self, answer: Future[object]) -> bool:
        """Tell whether it waits for what somebody holds."""
        ends_at = time.monotonic() + 30
        with connection.cursor() as cursor:
            while not answer.done():
                assert time.monotonic() < ends_at
                cursor.execute("SELECT pg_blocking_pids(%s) <> '{}', pg_sleep(0.001)", [self._pid])
                if cursor.fetchone()[0]:
                    return True
        return False

    def close(self) -> None:
        self._pool.submit(connections.close_all).result()
        self._pool.shutdown()


@pytest.fixture
def second(engine_db: None) -> Iterator[Second]:
    one = Second()
    yield one
    one.close()


def answer_of(act: Act, key: int, name: str) -> str:
    """Do it, and return what it says."""
    try:
        act(Instance.objects.get(key=key))
    except (RepriseError, Instance.DoesNotExist) as refusal:
        return type(refusal).__name__
    return name


def prepared(story: Workflow[str, None], wanted: dict[str, str]) -> dict[str, int]:
    """Make an instance of each name, in the state that is wanted; return their keys."""
    params = {"failed": "fails", "complete": "ends", "running": "works", "sleeping": "works"}
    made = story.start_many(
        {"id": name, "params": params.get(state, "asks")} for name, state in wanted.items()
    ).created
    keys = {one.id: one.key for one in made}
    with running_shift(slots=len(made)):
        wait_until(lambda: all(row.status == "waiting" for row in Instance.objects.all()))
        for one in made:
            if wanted[one.id] not in NAPPING:
                one.send_event("go")
        wait_until(lambda: not _unready(wanted))
    # Something for `accept_code` to do, and something that stays in the buffer.
    Instance.objects.filter(status="waiting").update(code="old")
    for name, state in wanted.items():
        if state == "paused":
            Instance.objects.get(key=keys[name]).pause()
    return keys


def _unready(wanted: dict[str, str]) -> list[str]:
    asking = set(requests.open_requests().values_list("instance__id", flat=True))
    finished = set(Instance.objects.filter(status__in=("errored", "complete")).values_list("id", flat=True))
    ready = asking | finished | {name for name, state in wanted.items() if state in NAPPING}
    busy = set(Instance.objects.exclude(owner=None).values_list("id", flat=True))
    return [name for name in wanted if name not in ready or name in busy]


def _run(key: int) -> None:
    """Let it be amid the body of step b, in a worker that does not live."""
    now = timezone.now()
    Step.objects.filter(instance_id=key, name="nap").update(
        status="complete", finished_at=now, delivery=2, wake_at=None
    )
    options = Step.objects.get(instance_id=key, name="a").options
    options.pop("rollback")
    facts = {"kind": "do", "name": "b", "count": 1, "options": options, "attempts": 1}
    Step.objects.create(instance_id=key, generation=1, seq=3, status="running", started_at=now, **facts)
    Attempt.objects.create(
        instance_id=key, generation=1, step_seq=3, number=1, status="running", worker="dead", started_at=now
    )
    _lease(key)


def _lease(key: int) -> None:
    Instance.objects.filter(key=key).update(
        status="running",
        waiting_for="",
        owner=NOBODY,
        fence=FENCE,
        wake_at=timezone.now() + timedelta(seconds=30),
    )


def _leave_to_retention(key: int, *acts: str) -> None:
    """Let it be kept no longer than to its end, where the case is about that; the others are kept."""
    if "retention" in acts:
        Instance.objects.filter(key=key).update(retention=AT_ONCE)


def trouble_with(told: dict[int, str]) -> list[str]:
    """Tell where the trail of an instance contradicts itself, or its row; `told` says what was done, by key."""
    statuses = dict(Instance.objects.filter(key__in=told).values_list("key", "status"))
    trails: dict[int, list[tuple[str, str, str]]] = {key: [] for key in told}
    rows = Audit.objects.filter(instance_key__in=told).order_by("key")
    for key, *line in rows.values_list("instance_key", "verb", "before", "after"):
        trails[key].append(tuple(line))
    return [
        f"{what}: {trails[key]}, now {statuses.get(key, 'gone')}"
        for key, what in told.items()
        if not _is_one_story(trails[key], statuses.get(key, ""), what)
    ]


def _is_one_story(trail: list[tuple[str, str, str]], status: str, what: str) -> bool:
    if any(earlier[2] != later[1] for earlier, later in pairwise(trail)):
        return False
    last = trail[-1][2] if trail else status
    is_swept = not status and "retention" in what  # of which the trail of the instance has nothing
    return last not in OPEN if is_swept else last == status


def drive_to_the_end() -> None:
    """Let a worker drive all that is left."""

    def is_over() -> bool:
        left = list(Instance.objects.filter(status__in=OPEN))
        for row in left:
            if row.status == "paused":
                row.resume()
        # Whatever they wait for, the time is up.
        now = timezone.now()
        Step.objects.filter(status="waiting", instance__status="waiting").update(wake_at=now)
        Instance.objects.filter(status="waiting").update(wake_at=now)
        return not left

    with running_shift(slots=200):
        wait_until(is_over, what="the end of all instances")
        wait_until(lambda: not Instance.objects.filter(notify_pending=True).exists())
    with connection.cursor() as cursor:
        found = [look(cursor, one) for one in INVARIANTS]
    assert [(one.invariant.name, one.offenders) for one in found if one.count] == []


# People with each other


def test_every_two_actions_at_once_tell_one_story(story: Workflow[str, None], second: Second) -> None:
    """I16: each is first, from a state in which it does something"""
    cases = {
        f"{number}": (one, other, STATES.get(one, "waiting"))
        for number, (one, other) in enumerate((one, other) for one in ACTIONS for other in ACTIONS)
    }
    keys = prepared(story, {name: state for name, (*_, state) in cases.items()})
    waited, told = 0, dict[int, str]()
    for name, (one, other, state) in cases.items():
        key = keys[name]
        _leave_to_retention(key, one, other)
        with transaction.atomic():
            first = answer_of(ACTIONS[one], key, one)
            later = second.begin(lambda k=key, o=other: answer_of(ACTIONS[o], k, o))
            waited += second.until_it_waits_or_is_done(later)
        told[key] = f"{state}: {one} → {first}, {other} → {later.result(timeout=30)}"
    assert trouble_with(told) == []
    assert waited > len(cases) / 2
    drive_to_the_end()


# People with a worker


def _flushed(key: int, status: str | None) -> list[tuple[Any, ...]]:
    """Do what the journal of the worker does that held it at first: step b is complete, and it leaves, or not."""
    # Of the generation and the fence that it has claimed, whatever became of them since.
    now = int(time.time() * 1_000_000)
    record = StepRecord(
        3, 0, "do", "b", 1, "complete", 3, attempts=1, output='""', started_us=now, finished_us=now
    )
    attempt = AttemptRecord(3, 1, "dead", now, "complete", finished_us=now)
    writes = Writes(steps={3: record}, attempts={(3, 1): attempt})
    if status is not None:
        output = "null" if status == "complete" else None
        writes.leave = Leave(status, output=output)
    batch = rows.Batch(NOBODY)
    batch.add(SimpleNamespace(claimed=SimpleNamespace(key=key, generation=1, fence=FENCE)), writes)  # type: ignore[arg-type]
    return _asked(flush_sql.FLUSH, batch.parameters())


def _asked(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _claimed(key: int) -> list[tuple[Any, ...]]:
    values = {"unlimited": ["raced"], "limit": 1, "worker_id": NOBODY, "lease": 30, "ahead": 0, "late_new": 0}
    return [row for row in _asked(claim_sql.CLAIM, values) if row[0] == key]


def _reaped(key: int) -> list[tuple[Any, ...]]:
    return [row for row in _asked(sql.REAP, {"lease": 30, "alive": [], "over": "[]"}) if row[0] == key]


def _make_due(key: int) -> None:
    Instance.objects.get(key=key).send_event("other")
    Instance.objects.filter(key=key).update(wake_at=LONG_AGO)


# Done when its turn has come, and not before: who claims or reaps takes what there is.
STAGES = {"due": _make_due, "running": _run}
FENCE = 1_000  # of the worker that held it at first
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
TURNS: dict[str, tuple[str, Callable[[int], list[tuple[Any, ...]]]]] = {
    "claim": ("due", _claimed),
    "reap": ("running", _reaped),
    "progress": ("running", lambda key: _flushed(key, None)),
    "give back": ("running", lambda key: _flushed(key, "queued")),
    "end": ("running", lambda key: _flushed(key, "complete")),
}


@pytest.mark.parametrize("is_first", [True, False], ids=["the worker first", "the action first"])
def test_every_action_and_a_worker_at_once_tell_one_story(
    story: Workflow[str, None], second: Second, is_first: bool
) -> None:
    """guarantee 17: what a worker writes counts before the action, or not at all"""
    cases = {
        f"{number}": (turn, act)
        for number, (turn, act) in enumerate((turn, act) for turn in TURNS for act in ACTIONS)
    }
    keys = prepared(story, {name: TURNS[turn][0] for name, (turn, _) in cases.items()})
    troubles = list[str]()
    for name, (turn, act) in cases.items():
        key, (state, write) = keys[name], TURNS[turn]
        STAGES[state](key)
        _leave_to_retention(key, act)
        race = _worker_first if is_first else _action_first
        said = race(lambda k=key, w=write: w(k), lambda k=key, a=act: answer_of(ACTIONS[a], k, a), second)
        troubles += trouble_with({key: f"{turn}, {act} → {said}"})
        if not is_first and _holds_the_row(said):
            write(key)  # again, as it does: it counts now, or is fenced
    assert troubles == []
    drive_to_the_end()


def _worker_first(write: Callable[[], object], act: Callable[[], str], second: Second) -> str:
    with transaction.atomic():
        assert write()
        later = second.begin(act)
        second.until_it_waits_or_is_done(later)
    return str(later.result(timeout=30))


def _action_first(write: Callable[[], object], act: Callable[[], str], second: Second) -> str:
    with transaction.atomic():
        said = act()
        # It never waits for anybody: it leaves out what somebody holds.
        assert bool(second.begin(write).result(timeout=30)) != _holds_the_row(said), said
    return said


def _holds_the_row(said: str) -> bool:
    """Tell whether who said so has done something to it; of these, none is over, so none is swept."""
    return not said.endswith("Error") and said != "retention"
