"""Group commit: every checkpoint of a shift goes through one writer.

During a flush, records accumulate; the next flush writes them all in one statement and one commit. A single instance
does not wait for a timer: an idle journal flushes at once. The statement checks fences under a row lock, and its answer
gives each cycle the state of its row.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg

from engine.replay.cycle import Cycle
from engine.replay.host import Phase
from engine.replay.records.writes import Writes
from engine.values.errors import ChildIdTakenError
from engine.values.states import InstanceStatus
from engine.worker.database import flush_sql, lost_answers
from engine.worker.database.clock import DatabaseClock, ticks_ns
from engine.worker.database.failure_groups import FailureGroups
from engine.worker.database.heartbeat import lease_seconds
from engine.worker.database.rows import Answer, Batch
from engine.worker.database.shift_connection import ShiftConnection
from engine.worker.database.transient import is_transient, until_answered
from engine.worker.tally import Tally

log = logging.getLogger("engine.journal")

RETRY_SKIPPED = 0.02  # seconds, while a sender holds the row
AT_A_TIME = 8  # cycles
# Bytes of outputs in one statement: handlers continue with these while the next ones are written.
BATCH_BYTES = 256 * 1024


class Journal:
    """Writes what cycles collected in `cycle.writes`.

    `on_written` gets the changed instances; `on_notices` is called if one of them concerns others. A broken connection
    is opened again, and what was being written is written again unless it is already there. If the database stays away,
    the task ends with the connection's error: the shift then gives up its lock, and with it every lease.
    """

    def __init__(
        self,
        connection: ShiftConnection,
        worker_id: int,
        clock: DatabaseClock,
        on_written: Callable[[list[Cycle]], None],
        on_notices: Callable[[], None],
        tally: Tally | None = None,
    ) -> None:
        self._connection = connection
        self._worker_id = worker_id
        self._clock = clock
        self._on_written = on_written
        self._on_notices = on_notices
        self._tally = tally or Tally()
        self._waiting: dict[Cycle, None] = {}  # in the order of their requests
        self._wanted = asyncio.Event()
        self._groups = FailureGroups(connection)

    def flush(self, cycle: Cycle) -> None:
        """Write the cycle's records with the next flush, unless it has left."""
        if cycle.phase is not Phase.LEFT:
            self._waiting[cycle] = None
            self._wanted.set()

    async def run(self) -> None:
        while True:
            await self._wanted.wait()
            await asyncio.sleep(0)  # let the other cycles woken in this turn of the loop run
            self._wanted.clear()
            await (
                self._flush_all()
            )  # a separate call, so that this does not keep the last cycles while it waits

    async def _flush_all(self) -> None:
        batch = [(cycle, cycle.writes) for cycle in self._waiting if _has_writes(cycle)]
        self._waiting.clear()
        for cycle, _ in batch:
            cycle.writes = Writes()
        for part in _parts(batch):
            await self._write(part)

    async def _write(self, batch: list[tuple[Cycle, Writes]]) -> None:
        sent_at = time.monotonic()
        try:
            answers = await self._execute(batch)
        except (psycopg.Error, UnicodeError) as error:
            if self._connection.is_lost(error):
                await self._write_again(batch, error)
            elif is_transient(error):
                log.warning("a flush failed and is tried again: %s", error)
                for cycle, writes in batch:
                    self._again(cycle, writes)
            else:
                await self._split(batch, error)
            return
        if time.monotonic() - sent_at > lease_seconds():
            # This process was stopped meanwhile: other workers take or have taken what it held.
            for cycle, _ in batch:
                cycle.exit.abandon()
            return
        written = list[Cycle]()
        for count, (cycle, writes) in enumerate(batch, start=1):
            if count % AT_A_TIME == 0:
                await asyncio.sleep(
                    0
                )  # let the first cycles of a large batch continue before the last gets its answer
            answer = answers.get(cycle.claimed.key)
            if cycle.phase is Phase.LEFT:
                written.append(cycle)  # its answer is late: another cycle of the instance may be running
            elif answer is None:
                self._again(cycle, writes)
            elif not answer.is_ours:
                log.info("lease of %s lost: fenced", cycle.claimed.key)
                cycle.exit.abandon()
                written.append(cycle)  # it may have left with a flush whose answer was lost
            else:
                tell(cycle, writes, answer.status, answer.signals, answer.ends_as, has_left=answer.has_left)
                self._tally.written(cycle.claimed.workflow, writes.attempts.values())
                written.append(cycle)
        self._on_written(written)

    async def _execute(self, batch: list[tuple[Cycle, Writes]]) -> dict[int, Answer]:
        rows = Batch(self._worker_id)
        for cycle, writes in batch:
            rows.add(cycle, writes)
        if rows.failures:
            await self._groups.register(rows.failures)
        sent = ticks_ns()
        found = await self._connection.fetch(_statement(rows), rows.parameters())
        received = ticks_ns()
        answers = [Answer._make(row) for row in found]
        if answers:
            self._clock.set(answers[0].now_us, sent_ns=sent, received_ns=received)
        if any(one.notify_pending for one in answers):
            self._on_notices()
        return {one.key: one for one in answers}

    async def _write_again(self, batch: list[tuple[Cycle, Writes]], error: Exception) -> None:
        """Recover after the connection broke, possibly after the commit: keep what was written, and write the rest."""
        log.warning("the journal lost its connection: %s", error)
        recorded = await self._recorded(batch)
        for cycle, writes in batch:
            has_starts, has_lines = recorded.get(cycle.claimed.key, (False, False))
            lost_answers.settle(writes, has_starts=has_starts, has_lines=has_lines)
            _put_back(cycle, writes)
            self.flush(cycle)

    async def _recorded(self, batch: list[tuple[Cycle, Writes]]) -> dict[int, tuple[bool, bool]]:
        async def ask() -> list[tuple[Any, ...]]:
            cursor = await self._connection.execute(
                flush_sql.RECORDED, lost_answers.parameters(self._worker_id, batch)
            )
            return await cursor.fetchall()

        await self._connection.reopen()
        found = await until_answered(self._connection, ask)
        return {key: (starts, lines) for key, starts, lines in found}

    async def _split(self, batch: list[tuple[Cycle, Writes]], error: Exception) -> None:
        """Find the record that the database refuses. Its instance fails, the others are written."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._write(batch[:middle])
            await self._write(batch[middle:])
            return
        cycle, writes = batch[0]
        taken = _taken_id(writes, error)  # it reads the error's details, which are omitted below
        if any(record.sensitive for record in writes.steps.values()):
            error = _without_values(error)
        log.error("the database refused the records of instance %s: %s", cycle.claimed.key, error)
        _put_back(cycle, writes)
        cycle.recover(taken or error)

    def _again(self, cycle: Cycle, writes: Writes) -> None:
        """Write it later, for example because a sender holds the row in an open transaction."""
        _put_back(cycle, writes)
        asyncio.get_running_loop().call_later(RETRY_SKIPPED, self.flush, cycle)


def _statement(rows: Batch) -> str:
    if rows.concerns_others:
        return flush_sql.FLUSH_WITH_OTHERS
    return flush_sql.FLUSH_STEPS if rows.is_of_steps else flush_sql.FLUSH


def _without_values(error: Exception) -> Exception:
    """Return what the server refused, without its detail and context, which quote the records."""
    if not isinstance(error, psycopg.Error):
        return error
    return type(error)(error.diag.message_primary or error.sqlstate or "refused")


def _has_writes(cycle: Cycle) -> bool:
    return cycle.phase is not Phase.LEFT and bool(cycle.writes)


def _put_back(cycle: Cycle, writes: Writes) -> None:
    """Return to the cycle what could not be written, merged with its newer writes."""
    writes.absorb(cycle.writes)
    cycle.writes = writes


def _taken_id(writes: Writes, error: Exception) -> ChildIdTakenError | None:
    """Return a clear error if another instance has the id of a child to be started."""
    if not isinstance(error, psycopg.errors.UniqueViolation):
        return None
    if error.diag.constraint_name != "engine_instance_id":
        return None
    said = error.diag.message_detail or ""  # "Key (workflow, id)=(child, parent-1f…) already exists."
    taken = [one for one in writes.children.values() if f"({one.workflow}, {one.id})" in said]
    return ChildIdTakenError(taken[0].workflow, taken[0].id) if taken else None


def _parts(batch: list[tuple[Cycle, Writes]]) -> Iterator[list[tuple[Cycle, Writes]]]:
    """Split a batch where its outputs become large."""
    part, size = list[tuple[Cycle, Writes]](), 0
    for cycle, writes in batch:
        own = sum(len(record.output or "") for record in writes.steps.values())
        if part and size + own > BATCH_BYTES:
            yield part
            part, size = [], 0
        part.append((cycle, writes))
        size += own
    if part:
        yield part


def tell(
    cycle: Cycle, writes: Writes, status: str, signals: int, ends_as: str = "", *, has_left: bool
) -> None:
    """Pass to a cycle the result of its writes and the state of its row."""
    ends = writes.leave is not None and writes.leave.is_end
    has_left_out = status == InstanceStatus.WAITING_FOR_PAUSE and bool(writes.starts) and not ends
    for seq, record in writes.steps.items():
        if not (has_left_out and seq in writes.starts):
            record.is_recorded = True
    if has_left_out:
        cycle.exit.keep_unstarted(writes, signals)
    else:
        for then in writes.then:
            then(False)
    for call in writes.committed:
        call()
    cycle.written(status, signals, ends_as, leave=writes.leave, has_left=has_left)
