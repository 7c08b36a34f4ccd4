"""Real shifts, moved by hand: their loop, their connection, their clock and their bodies are the test's."""

from __future__ import annotations

import asyncio
from asyncio import events
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import psycopg

from engine.declare.context import StepContext
from engine.replay.attempts.bodies import DoOperation
from engine.replay.cycle import Cycle
from engine.replay.host import Claimed
from engine.replay.records.history import AttemptRecord, History
from engine.testing.bare_worker import BareWorker
from engine.testing.connection import Answer
from engine.testing.parts import UnlimitedSlices
from engine.values.states import InstanceStatus
from engine.worker.bodies.attempt import Bodies
from engine.worker.cycle_host import CycleHost
from engine.worker.database import flush_sql, history_sql, sql
from engine.worker.database.journal import Journal
from engine.worker.database.reader import Reader
from engine.worker.quarantined import TakesQuarantined
from tests.hand.clock import SimulatedClock
from tests.hand.loop import HandLoop

LEASE_SECONDS = 30.0


class Gone(psycopg.OperationalError):
    """The connection of a shift broke."""


class Cut(psycopg.OperationalError):
    """The connection of a journal broke, and can be opened again."""


class Witness(Protocol):
    """Who looks at everything that workers do."""

    def before(self, worker: HandShift, statement: str, parameters: Any) -> None: ...
    def after(self, worker: HandShift, statement: str, parameters: Any, rows: list[Any]) -> None: ...
    def refused(self, parameters: Any) -> None: ...
    def body_starts(self, worker: HandShift, body: Body) -> None: ...


@dataclass(eq=False)
class Body:
    """A body that runs until the test ends it: told that it is cancelled, it runs on."""

    cycle: Cycle
    operation: DoOperation
    attempt: AttemptRecord
    over: asyncio.Event = field(default_factory=asyncio.Event)
    value: str | None = None
    error: BaseException | None = None

    @property
    def key(self) -> tuple[int, int, int, int]:
        facts = self.cycle.claimed
        return facts.key, facts.generation, self.attempt.step_seq, self.attempt.number

    async def live(self, *args: Any, ctx: StepContext) -> str | None:
        while not self.over.is_set():
            with suppress(asyncio.CancelledError):
                await self.over.wait()
        ctx.log.info(f"{self.value} {self.error}")
        if self.error is not None:
            raise self.error
        return self.value


class HandBodies(Bodies):
    """Keeps its books as in every worker; what runs for a body is the test's."""

    def __init__(self, shift: HandShift) -> None:
        super().__init__(shift.loop, shift.clock.now_us)
        self._shift = shift
        self.running: list[Body] = []

    def run(self, cycle: Cycle, operation: DoOperation, attempt: AttemptRecord) -> None:
        body = Body(cycle, operation, attempt)
        self.running.append(body)
        self._shift.witness.body_starts(self._shift, body)
        super().run(cycle, operation, attempt)

    def _function(self, operation: DoOperation, attempt: AttemptRecord) -> Any:
        return next(body.live for body in self.running if body.attempt is attempt)

    def only_awaits(self, cycle: Cycle, seconds: float) -> bool:
        return False


class HandConnection:
    """A line whose statements wait at a boundary before they are sent, and again before their answer comes."""

    def __init__(self, shift: HandShift, real: psycopg.Connection[Any]) -> None:
        self._shift = shift
        self._real = real
        self.closed = False
        self.refusals: dict[str, psycopg.Error] = {}  # by the statement that is refused once
        self.cuts: dict[str, str] = {}  # by statement: cut off once, before or after it is done
        self.to_send: list[str] = []

    async def execute(self, sent: str, parameters: Any = None) -> Answer:
        """Execute a statement. To the test, the shorter statement of a flush is the same as the longer one."""
        statement = flush_sql.FLUSH if sent is flush_sql.FLUSH_STEPS else sent
        self.to_send.append(statement)
        await self._shift.loop.boundary()
        self.to_send.remove(statement)
        if self.closed:
            raise Gone
        self._maybe_refuse(statement, parameters)
        cut = self.cuts.pop(statement, "")
        if cut == "before":
            raise Cut
        self._shift.witness.before(self._shift, statement, parameters)
        rows = self._send(sent, parameters)
        self._shift.witness.after(self._shift, statement, parameters, rows)
        await self._shift.loop.boundary()
        if self.closed:
            raise Gone
        if cut:
            raise Cut
        return Answer(rows)

    async def fetch(self, statement: str, parameters: Any) -> list[Any]:
        return await (await self.execute(statement, parameters)).fetchall()

    def is_lost(self, error: Exception) -> bool:
        return isinstance(error, Cut | Gone)

    async def reopen(self) -> None:
        await self._shift.loop.boundary()
        if self.closed:
            raise Gone

    def _maybe_refuse(self, statement: str, parameters: Any) -> None:
        refusal = self.refusals.pop(statement, None)
        if refusal is None:
            return
        if statement is flush_sql.FLUSH and isinstance(refusal, psycopg.DataError):
            self._shift.witness.refused(parameters)
        raise refusal

    def _send(self, statement: str, parameters: Any) -> list[Any]:
        try:
            return self._real.execute(statement, parameters, prepare=True).fetchall()
        except psycopg.Error as error:  # the journal would try again, or give the instance up
            raise AssertionError(f"the database refused {statement}: {error}") from error


class HandShift(BareWorker):
    """The parts of a shift, whose statements and bodies go on when the test says so."""

    def __init__(
        self,
        name: str,
        real: psycopg.Connection[Any],
        clock: SimulatedClock,
        witness: Witness,
        *,
        takes_quarantined: TakesQuarantined = TakesQuarantined.WHEN_EMPTY,
    ) -> None:
        super().__init__()
        self.name = name
        self.clock = clock
        self.loop = HandLoop(clock)
        self.witness = witness
        self.cycles_ever: list[Cycle] = []
        self._real = real
        self._main: asyncio.Task[Any] | None = None
        outer = events._get_running_loop()
        events._set_running_loop(self.loop)
        try:
            self._sit_down(takes_quarantined)
        finally:
            events._set_running_loop(outer)
        self._writing = self.loop.create_task(self._journal.run())
        self.loop.drain()

    def _sit_down(self, takes_quarantined: TakesQuarantined) -> None:
        [(taken,)] = self._real.execute(sql.TAKE_WORKER_LOCK, (self.worker_id,)).fetchall()
        assert taken, "the worker id of another shift"
        self.connection = HandConnection(self, self._real)
        connection: Any = self.connection
        reader = Reader(connection, self.worker_id, self.clock)
        reader._lease = LEASE_SECONDS
        bodies = HandBodies(self)
        self.bodies = bodies.running
        self._assemble(
            self.name,
            reader,
            Journal(connection, self.worker_id, self.clock, self._on_written, lambda: None),
            clock=self.clock,
            bodies=bodies,
            slices=UnlimitedSlices(_raise),
            takes_quarantined=takes_quarantined,
            on_notices=lambda: None,  # no instance here has to do with another
        )

    def _make_cycle(self, host: CycleHost, claimed: Claimed, history: History) -> Cycle:
        cycle = super()._make_cycle(host, claimed, history)
        self.cycles_ever.append(cycle)
        return cycle

    def _on_written(self, cycles: list[Cycle]) -> None:
        """Nobody watches."""

    # What the test may do

    @property
    def holds(self) -> dict[int, Cycle]:
        return self._host.cycles

    @property
    def is_quiet(self) -> bool:
        return not self.loop.waiting

    @property
    def is_reading_events(self) -> bool:
        """Tell whether the next statement is to look for the events of one instance, not part of a claim."""
        is_claiming = self._main is not None and not self._main.done()
        return not is_claiming and history_sql.BUFFERED_EVENTS in self.connection.to_send

    def step(self, choice: int = 0) -> None:
        if self.loop.waiting:
            self.loop.step(choice)

    def sweep(self) -> None:
        """Begin what a shift does every few seconds."""

        async def sweep() -> None:
            await self._claimer.sweep()
            await self._claimer.look_for_signals()
            await self._claimer.claim()

        self._begin(sweep)

    def watch_leases(self) -> None:
        """Look at the leases, as each sweep does: the time that passes in one step is that of many sweeps."""
        now, leases = self.loop.time(), self._reader._leases
        silent = leases.see_beats(self._real.execute(sql.BEATS).fetchall(), now)
        leases.see_free(self._real.execute(sql.FREE, {"owners": silent}).fetchall(), now)

    def claim(self) -> None:
        self._begin(self._claimer.claim)

    def look(self) -> None:
        """Begin what a shift does when somebody says that something of its own has changed."""
        self._begin(self._claimer.look_at_rows)

    def beat(self) -> None:
        parameters = {"worker_id": self.worker_id, "lease": LEASE_SECONDS, "only": None}
        self._real.execute(sql.RENEW, parameters, prepare=True)
        self.witness.after(self, sql.RENEW, parameters, [])

    def drain_away(self) -> None:
        """Give everything back, as a worker does that is told to stop, its grace over."""

        def drain() -> None:
            for cycle in list(self._host.cycles.values()):
                cycle.exit.quiesce(InstanceStatus.QUEUED)
            for cycle in list(self._host.cycles.values()):
                cycle.exit.release()

        self.loop.run(drain)

    def end_body(self, body: Body, *, value: str | None = None, error: BaseException | None = None) -> None:
        """Let the body say a line and end."""
        self.bodies.remove(body)
        body.value, body.error = value, error
        self.loop.run(body.over.set)

    def die(self) -> None:
        """Be killed: nothing of it goes on, and its lock is free at once."""
        self._release_lock()
        self.loop.die()
        for cycle in self.cycles_ever:
            cycle.loop.shut()

    def lose_connection(self) -> None:
        """Find the connection broken: give up everything, without a write. Its bodies end unheard."""
        self._release_lock()
        for cycle in list(self._host.cycles.values()):
            self.loop.run(lambda cycle=cycle: cycle.exit.abandon())  # type: ignore[misc]
        for body in list(self.bodies):
            self.end_body(body, value="too late")
        self.die()

    def _release_lock(self) -> None:
        self.connection.closed = True
        self._real.execute("SELECT pg_advisory_unlock_all()")

    def _begin(self, what: Callable[[], Any]) -> None:
        if self._main is None or self._main.done():
            self._main = self.loop.create_task(what())
            self.loop.drain()


def _raise(error: BaseException) -> None:
    raise error
