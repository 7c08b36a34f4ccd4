"""Several shifts, their database, and people who start, send and steer; faults at every boundary."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, ClassVar

import psycopg
from django.db import connection, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine import InstanceFinishedError
from engine.declare.registry import Workflow
from engine.models import Instance
from engine.models.connection import parameters
from engine.replay.records.outcomes import micros
from engine.steer import lifecycle
from engine.steer.events import send_event
from engine.worker.database import claim_sql, flush_sql, history_sql, sql
from engine.worker.database.connect import SESSION as WORKER_SESSION
from engine.worker.quarantined import TakesQuarantined
from tests.hand import clock
from tests.hand.clock import SimulatedClock
from tests.hand.worker import LEASE_SECONDS, Body, HandShift
from tests.model.oracle import FINAL, Oracle, Promises
from tests.model.replay import replay

WORKERS = 3
INSTANCES = 4
ROUNDS = 30
SECOND = 1_000_000
TABLES = (
    "engine_instance, engine_step, engine_attempt, engine_event, engine_log, engine_audit, engine_generation, "
    "engine_waiter, engine_open_request, engine_ended_request, engine_notice"
)

do = st.builds(lambda name, delay: ["do", name, delay], st.sampled_from("ab"), st.sampled_from([0, 5]))
# One of them is shorter than claims look ahead: whoever parks for it may be claimed before the answer to that is read.
sleep = st.builds(lambda seconds: ["sleep", seconds], st.sampled_from([0, 0.15, 3, 40]))
wait = st.tuples(st.just("wait"), st.sampled_from(["red", "blue"]), st.sampled_from([None, 2, 35])).map(list)
progress = st.just(["progress", "on the way"])
CUTS = {
    "flush": flush_sql.FLUSH,
    "claim": claim_sql.CLAIM,
    "history": history_sql.HISTORY_STEPS,
    "held": sql.HELD,
}
simple = do | do | sleep | wait
pair = st.builds(
    lambda kind, one, other: [kind, one, other], st.sampled_from(["both", "race"]), simple, simple
)
programs = st.lists(simple | simple | pair | progress, min_size=1, max_size=4)
indexes = st.integers(min_value=0, max_value=11)
counts = st.integers(min_value=1, max_value=6)
types = st.sampled_from(["red", "blue"])


# A worker's statement never waits for a row: everything here happens in one thread, so it would wait for ever.
NO_WAITING = "SET lock_timeout = '100ms'"


class Database:
    """The connections of a simulation, kept over its many runs."""

    def __init__(self) -> None:
        self._open: list[psycopg.Connection[Any]] = []
        self.checks = self.connect()
        self.clock = SimulatedClock(self.checks)
        self.of_workers = [self.connect(f"{WORKER_SESSION}; {NO_WAITING}") for _ in range(WORKERS)]
        with connection.cursor() as cursor:
            cursor.execute(clock.SESSION)

    def connect(self, session: str = "") -> psycopg.Connection[Any]:
        made = psycopg.connect(**parameters(), autocommit=True)
        self._open.append(made)
        for statements in (session, clock.SESSION):
            if statements:
                made.execute(statements)
        return made

    def empty(self) -> None:
        for one in self.of_workers:
            one.execute("SELECT pg_advisory_unlock_all()")
        self.checks.execute(f"TRUNCATE {TABLES} RESTART IDENTITY")

    def close(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("RESET search_path; RESET jit; DROP SCHEMA sim CASCADE")
        for one in self._open:
            one.close()


def guarded(method: Callable[..., None]) -> Callable[..., None]:
    """Let time pass, do it, and remember if it went wrong: then the end need not be looked at."""

    @functools.wraps(method)
    def call(self: Protocol, *args: Any, **kwargs: Any) -> None:
        self.is_broken = True
        self.clock.advance()
        method(self, *args, **kwargs)
        self.is_broken = False

    return call


class Protocol(RuleBasedStateMachine):
    """The real statements, cycles, journal and shifts on a real database; only time and chance are the test's.

    The last worker is of the kind that takes only instances whose worker died.
    """

    database: ClassVar[Database]
    story: ClassVar[Workflow[Any, Any]]
    hurried: ClassVar[Workflow[Any, Any]]

    def __init__(self) -> None:
        super().__init__()
        self.is_broken = False
        self.database.empty()
        self.clock = self.database.clock
        self.oracle = Oracle(self.database.checks, self.clock)
        self._names = itertools.count(1)
        self._values = itertools.count(1)
        self.workers = [self._new_worker(number) for number in range(WORKERS)]

    def _new_worker(self, number: int) -> HandShift:
        name, connection = f"worker-{next(self._names)}", self.database.of_workers[number]
        takes_quarantined = TakesQuarantined.ONLY if number == WORKERS - 1 else TakesQuarantined.WHEN_EMPTY
        return HandShift(name, connection, self.clock, self.oracle, takes_quarantined=takes_quarantined)

    def _worker(self, index: int) -> HandShift:
        return self.workers[index % WORKERS]

    def _instance(self, index: int) -> Instance:
        keys = list(self.oracle.instances)
        return Instance.objects.get(key=keys[index % len(keys)])

    # What people do

    @initialize(program=programs)
    @guarded
    def begin(self, program: list[Any]) -> None:
        self._start(self.story, program)

    @precondition(lambda self: len(self.oracle.instances) < INSTANCES)
    @rule(program=programs, is_hurried=st.booleans())
    @guarded
    def start(self, program: list[Any], is_hurried: bool) -> None:
        self._start(self.hurried if is_hurried else self.story, program)

    def _start(self, workflow: Workflow[Any, Any], program: list[Any]) -> None:
        instance = workflow.start(program, by="ann")
        self.oracle.instances[instance.key] = Promises()

    @rule(index=indexes, type=types, twice=st.booleans())
    @guarded
    def send(self, index: int, type: str, twice: bool) -> None:
        instance = self._instance(index)
        if not twice:
            self._send(instance, type)
        elif not instance.is_finished:
            self._send_twice(instance, type)

    def _send(self, instance: Instance, type: str) -> None:
        promises, payload = self.oracle.instances[instance.key], next(self._values)
        try:
            event = send_event(instance, type, payload)
        except InstanceFinishedError:
            assert instance.refresh().status in FINAL
        else:
            promises.events[event.key] = type, payload

    def _send_twice(self, instance: Instance, type: str) -> None:
        """Deliver one message two times, under one key."""
        payload = next(self._values)
        event, again = (send_event(instance, type, payload, f"key-{payload}") for _ in range(2))
        assert event.key == again.key
        self.oracle.instances[instance.key].events[event.key] = type, payload

    @rule(index=indexes, type=types, worker=indexes, count=counts)
    @guarded
    def send_slowly(self, index: int, type: str, worker: int, count: int) -> None:
        """Hold the instance's row in an open transaction, while a worker goes on."""
        instance = self._instance(index)
        with transaction.atomic():
            self._send(instance, type)
            for _ in range(count):
                self._worker(worker).step()

    @rule(index=indexes, action=st.sampled_from(["pause", "pause", "resume", "resume", "terminate"]))
    @guarded
    def steer(self, index: int, action: str) -> None:
        getattr(self, f"_{action}")(self._instance(index))

    def _pause(self, instance: Instance) -> None:
        after = lifecycle.pause(instance, by="ann")
        self.oracle.instances[instance.key].is_paused = not after.is_finished

    def _resume(self, instance: Instance) -> None:
        promises = self.oracle.instances[instance.key]
        if instance.status == "paused" and instance.paused_at is not None:
            promises.pauses.append((micros(instance.paused_at), self.clock.us))
        lifecycle.resume(instance, by="ann")
        promises.is_paused = False

    def _terminate(self, instance: Instance) -> None:
        try:
            lifecycle.terminate(instance, by="ann")
        except InstanceFinishedError:
            return
        self.oracle.holders.pop(instance.key, None)

    @rule(index=indexes, choice=indexes, from_start=st.booleans())
    @guarded
    def restart(self, index: int, choice: int, from_start: bool) -> None:
        """Begin again, from the start or from a step that is recorded."""
        instance = self._instance(index)
        steps = list(instance.steps.filter(generation=instance.generation, parent=0).order_by("seq"))
        if from_start or not steps:
            instance.restart(by="ann")
        else:
            step = steps[choice % len(steps)]
            instance.restart(step.name, step.count, step.kind, by="ann")
        self.oracle.restarted(instance.key)

    @precondition(lambda self: len(self.oracle.instances) > 1)
    @rule(index=indexes)
    @guarded
    def delete(self, index: int) -> None:
        instance = self._instance(index)
        if instance.is_finished:
            self.oracle.deleted(instance.key)
            instance.delete(by="ann")

    # What workers do

    @rule(worker=indexes, what=st.sampled_from(["claim", "sweep", "look", "beat"]))
    @guarded
    def turn(self, worker: int, what: str) -> None:
        getattr(self._worker(worker), what)()

    @rule(worker=indexes, count=counts, choice=indexes)
    @guarded
    def step(self, worker: int, count: int, choice: int) -> None:
        for _ in range(count):
            self._worker(worker).step(choice)

    @precondition(lambda self: any(worker.bodies for worker in self.workers))
    @rule(choice=indexes, ends_well=st.booleans())
    @guarded
    def end_body(self, choice: int, ends_well: bool) -> None:
        running = [(worker, body) for worker in self.workers for body in worker.bodies]
        worker, body = running[choice % len(running)]
        self._end(worker, body, ends_well=ends_well)

    def _end(self, worker: HandShift, body: Body, *, ends_well: bool = True) -> None:
        value = f"value {next(self._values)}"
        if ends_well:
            self.oracle.body_ends(body, value)
            worker.end_body(body, value=value)
        else:
            worker.end_body(body, error=RuntimeError(value))

    @rule(worker=indexes)
    @guarded
    def settle(self, worker: int) -> None:
        """Claim, and get as far as it goes without a body's end."""
        self._worker(worker).claim()
        self._settle(self._worker(worker))

    @rule(worker=indexes)
    @guarded
    def work(self, worker: int) -> None:
        """Claim, and get as far as it goes."""
        self._worker(worker).claim()
        self._work(self._worker(worker))

    def _work(self, worker: HandShift) -> None:
        for _ in range(ROUNDS):
            self._settle(worker)
            if not worker.bodies:
                return
            for body in list(worker.bodies):
                self._end(worker, body)
        raise AssertionError("a worker runs bodies without end")

    def _settle(self, worker: HandShift) -> None:
        """Let every statement of the worker be done."""
        for _ in range(400):
            if worker.is_quiet:
                return
            worker.step()
        raise AssertionError("a worker makes statements without end")

    # What goes wrong

    @rule(seconds=st.sampled_from([1, 3, 10, 31]))
    @guarded
    def time_passes(self, seconds: int) -> None:
        self._pass(seconds)

    def _pass(self, seconds: int) -> None:
        self._advance(seconds)
        for worker in self.workers:
            worker.loop.drain()

    def _advance(self, seconds: int) -> None:
        """Let time pass in which everybody watches the leases."""
        for part in (0, seconds // 2, seconds - seconds // 2):
            self.clock.advance(part * SECOND)
            for worker in self.workers:
                worker.watch_leases()

    @rule(worker=indexes, what=st.sampled_from(["die", "lose_connection"]), count=counts)
    @guarded
    def kill(self, worker: int, what: str, count: int) -> None:
        """Kill a worker, or break its connection, in the middle of what it does; another one sweeps."""
        number = worker % WORKERS
        self.workers[number].claim()
        for _ in range(count):
            self.workers[number].step()
        getattr(self.workers[number], what)()
        self.workers[number] = self._new_worker(number)
        self._worker(worker + 1).sweep()

    @rule(worker=indexes)
    @guarded
    def drain(self, worker: int) -> None:
        """Tell a worker to stop; it comes back, as another shift of the same process would."""
        self._worker(worker).drain_away()

    @rule(worker=indexes, what=st.sampled_from(["records", "flush", "reading", "claim"]))
    @guarded
    def refuse(self, worker: int, what: str) -> None:
        """Let the database refuse what a worker writes next, or its next look for events, or cancel a statement."""
        statement, error = {
            "records": (flush_sql.FLUSH, psycopg.errors.UntranslatableCharacter("not storable")),
            "flush": (flush_sql.FLUSH, psycopg.errors.QueryCanceled("by somebody")),
            "reading": (history_sql.BUFFERED_EVENTS, psycopg.errors.InternalError_("not readable")),
            "claim": (claim_sql.CLAIM, psycopg.errors.QueryCanceled("by somebody")),
        }[what]
        one = self._worker(worker)
        if what != "reading" or one.is_reading_events:
            one.connection.refusals[statement] = error

    @rule(worker=indexes, when=st.sampled_from(["before", "after"]), what=st.sampled_from([*CUTS]))
    @guarded
    def cut(self, worker: int, when: str, what: str) -> None:
        """Break a connection of a worker, before or after its next statement of that kind is done."""
        self._worker(worker).connection.cuts[CUTS[what]] = when

    @rule(slow=indexes, quick=indexes, count=counts, works=st.booleans())
    @guarded
    def overtake(self, slow: int, quick: int, count: int, works: bool) -> None:
        """Stall a worker past its lease, let another one take over, and let the first one go on."""
        first, second = self._worker(slow), self._worker(quick)
        first.claim()
        for _ in range(count):
            first.step()
        self._advance(int(LEASE_SECONDS + 1))
        for _ in range(2):
            second.sweep()
            self._settle(second)
        for body in list(first.bodies):
            self._end(first, body)
        self._settle(first)
        if works:
            self._work(second)

    # What must hold

    @invariant()
    def promises_are_kept(self) -> None:
        if not self.is_broken:
            self.is_broken = True
            self.oracle.check()
            self.is_broken = False

    def teardown(self) -> None:
        try:
            if not self.is_broken:
                self._let_all_finish()
                self._look_at_the_end()
        finally:
            for worker in self.workers:
                worker.die()

    def _let_all_finish(self) -> None:
        for worker in self.workers:
            worker.connection.refusals.clear()
            worker.connection.cuts.clear()
        for _ in range(ROUNDS):
            still_open = list(Instance.objects.open())
            if not still_open:
                return
            for instance in still_open:
                self._help(instance)
            for worker in self.workers:
                worker.beat()
                worker.sweep()
                self._work(worker)
            self.oracle.check()
            self._pass(20)
        raise AssertionError(
            f"never finished: {[(one.key, one.status, one.waiting_for) for one in still_open]}"
        )

    def _help(self, instance: Instance) -> None:
        """Do what people owe to an instance."""
        if instance.status in ("paused", "waiting_for_pause"):
            self._resume(instance)
        for wait in instance.steps.filter(status="waiting", kind="event", wake_at=None):
            self._send(instance, wait.event_types[0])

    def _look_at_the_end(self) -> None:
        self.oracle.check_the_end()
        self._look_at_sleeps()
        for instance in Instance.objects.filter(status="complete"):
            declared = self.story if instance.workflow == "story" else self.hurried
            replay(self.oracle, declared, instance.key, self.clock.us)

    def _look_at_sleeps(self) -> None:
        """No sleep and no time-out of a wait came early, time paused left aside."""
        for key, promises in self.oracle.instances.items():
            for step in Instance.objects.get(key=key).steps.filter(finished_at__isnull=False):
                ended_early = step.status == "cancelled" or (step.kind, step.status) == ("event", "complete")
                if step.kind not in ("sleep", "event") or ended_early:
                    continue
                seconds = float(step.name.split()[1])
                began, ended = (micros(at) for at in (step.started_at, step.finished_at))
                paused = sum(max(0, min(ended, to) - max(began, since)) for since, to in promises.pauses)
                assert ended - began - paused >= seconds * SECOND, f"{step} of {key} ended early"
