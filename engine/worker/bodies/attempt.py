"""Run the bodies of steps: async ones on the worker's loop, sync ones in threads."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import SyncToAsync

from engine.declare.context import StepContext, StepLog
from engine.replay.attempts.attempt import AttemptedOperation
from engine.replay.nesting.body import current
from engine.replay.nesting.nested_calls import make_task
from engine.replay.records.history import AttemptRecord, LogLine
from engine.replay.records.log_lines import log_line
from engine.replay.state import CycleState
from engine.values.errors import OpenTransactionError, StepTimeoutError
from engine.values.serialization import Stored
from engine.worker.bodies import atomic, sessions
from engine.worker.bodies.delays import Delays
from engine.worker.bodies.orm_calls import BodyCalls, OrmCalls
from engine.worker.bodies.running import Running, is_async
from engine.worker.bodies.thread_calls import DaemonExecutor
from engine.worker.bodies.threads import Threads
from engine.worker.tally import Tally

log = logging.getLogger("engine.bodies")

SYNC_BODIES = 16  # threads per worker
ORM_CALLS = (
    4  # threads with connections, shared by the ORM calls of async bodies; at most as many as for sync bodies
)
THREAD_CALLS = 16  # threads for calls of async bodies through asyncio.to_thread


# Instance, fence, step, phase, number. The fence distinguishes the cycles of one instance: after a restart, a body of
# the last generation may still run next to the same attempt in the new one.
Key = tuple[int, int, int, str, int]


class Bodies:
    """Runs bodies and settles their attempts, on the worker's loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        now_us: Callable[[], int],
        *,
        threads: int = SYNC_BODIES,
        tally: Tally | None = None,
    ) -> None:
        self._loop = loop
        loop.set_task_factory(make_task)
        self._now_us = now_us
        self._tally = tally or Tally()
        self._thread = threading.get_ident()
        self.threads = Threads(threads)
        self._orm = OrmCalls(min(ORM_CALLS, threads))
        self.delays = Delays(loop, self._orm_calls)
        self._elsewhere = Threads(THREAD_CALLS, name="call", keeps_sessions=False)
        self._running: dict[Key, Running] = {}
        self._tasks: dict[asyncio.Task[None], Running] = {}
        self._take_executor()

    def _take_executor(self) -> None:
        self._loop.set_default_executor(DaemonExecutor(self._elsewhere))

    @property
    def all_stuck(self) -> bool:
        """Return whether all threads of some kind are stuck, so that what needs one waits forever in this process."""
        pools = (self.threads, self.delays.threads, self._orm, self._elsewhere)
        return any(pool.all_stuck for pool in pools)

    @property
    def overdue(self) -> list[str]:
        """Return what still runs although it was given up: bodies that ignore their cancellation, calls that hang."""
        tasks = [one for one in self._tasks.values() if not one.is_awaited]
        pools = (self.threads, self.delays, self._orm, self._elsewhere)
        return [str(one) for one in (*tasks, *(what for pool in pools for what in pool.given_up))]

    def waits_in_vain(self, cycle: CycleState) -> bool:
        """Return whether a body of the instance waits for a thread and none will become free."""
        if not self.threads.all_stuck:
            return False
        return any(
            one.job is not None and not one.job.has_begun
            for one in self._running.values()
            if one.cycle is cycle
        )

    @property
    def left(self) -> list[str]:
        """Return what still runs, on the loop or on a thread: after `stop`, what prevents a clean exit."""
        on_threads = [*self.threads.left, *self._orm.left, *self._elsewhere.left, *self.delays.left]
        return [str(one) for one in (*self._tasks.values(), *on_threads)]

    @property
    def is_saturated(self) -> bool:
        """Return whether a sync body that starts now would have to wait for a thread."""
        return self.threads.is_saturated

    def stop(self) -> None:
        """Cancel what runs on the loop, let threads finish, and wait for nothing."""
        for task in self._tasks:
            task.cancel()
        for pool in (self.threads, self.delays, self._orm, self._elsewhere):
            pool.stop()

    def run(self, cycle: CycleState, operation: AttemptedOperation, attempt: AttemptRecord) -> None:
        """Start the body of a recorded attempt."""
        context = self._context(cycle, operation, attempt)
        running = Running(cycle, operation, attempt, context, fn=self._function(operation, attempt))
        self._running[_key(cycle, attempt)] = running
        if operation.options.atomic:
            running.transaction = atomic.Transaction(cycle, operation, attempt)
            self._run_sync(running)
        elif is_async(running.fn):
            self._start_clock(running)
            self._run_async(running, running.fn, contextvars.Context())
        else:
            self._run_sync(running)

    def _function(self, operation: AttemptedOperation, attempt: AttemptRecord) -> Callable[..., Any]:
        """Return what to call for this attempt."""
        return operation.fn

    def only_awaits(self, cycle: CycleState, seconds: float) -> bool:
        """Return whether the instance has done nothing for this long but await async bodies or a time."""
        if cycle.is_resting:
            return True
        since = time.monotonic() - seconds
        running = [self._running.get(_key(cycle, attempt)) for attempt in cycle.steps.attempts()]
        return bool(running) and all(one and one.task and one.started_at < since for one in running)

    def cancel(self, cycle: CycleState, attempt: AttemptRecord) -> bool:
        """Cancel an async body; set `ctx.cancelled` for a sync one. Return False if an atomic one is committing."""
        running = self._running.get(_key(cycle, attempt))
        if running is None:
            return True
        if running.transaction is not None and not running.transaction.end():
            return False
        running.context.cancel()
        cancelled = functools.partial(self._settle, running, error=asyncio.CancelledError())
        if running.task is not None:
            running.task.cancel()
            # A task cancelled before its first step runs nothing, so it does not settle either.
            running.task.add_done_callback(lambda _: cancelled())
        elif running.job is not None and running.job.has_begun:
            # Only after all cancellations: the replacement thread would start what waits.
            self._loop.call_soon(running.job.give_up)
        elif running.job is not None:
            running.job.give_up()
            if not running.job.has_begun:
                self._loop.call_soon(cancelled)
        return True

    def ask_delay(
        self, cycle: CycleState, operation: AttemptedOperation, attempt: AttemptRecord, error: BaseException
    ) -> None:
        """Call the step's delay function, and let the cycle back off by its answer."""
        context = self._context(cycle, operation, attempt)
        self.delays.ask(operation, attempt, context, error)

    # Async bodies

    def _run_async(
        self, running: Running, fn: Callable[..., Awaitable[Any]], context: contextvars.Context
    ) -> None:
        running.loop = self._loop
        context.run(current.set, running)
        running.calls = self._orm_calls()
        context.run(SyncToAsync.thread_sensitive_context.set, running.calls.context)
        running.task = task = self._loop.create_task(self._await(running, fn), context=context)
        self._tasks[task] = running
        task.add_done_callback(self._ended)

    def _orm_calls(self) -> BodyCalls:
        """Return the executor that sends the ORM calls of one async function to a thread."""
        return BodyCalls(self._orm)

    def _ended(self, task: asyncio.Task[None]) -> None:
        running = self._tasks.pop(task)
        if running.calls is not None:
            running.calls.leave()

    async def _await(self, running: Running, fn: Callable[..., Awaitable[Any]]) -> None:
        operation = running.operation
        try:
            args, kwargs = running.called_with()
            value = await fn(*args, **kwargs)
            if running.nest is not None:
                await running.nest.rest()
            stored = operation.store(value)
        except BaseException as error:  # noqa: BLE001 - user code: SystemExit is a failed attempt too
            self._settle(running, error=error)
        else:
            self._settle(running, stored=stored)

    # Sync bodies

    def _run_sync(self, running: Running) -> None:
        context = contextvars.Context()  # context variables set by a body end with it
        running.job = self.threads.submit(lambda: context.run(self._in_thread, running), running)

    def _in_thread(self, running: Running) -> None:
        """Run a sync body on its thread, and report its end to the loop in any case."""
        current.set(running)
        self._from_thread(self._start_clock_in_thread, running)
        try:
            end = self._call_sync(running)
        except BaseException as error:  # noqa: BLE001 - user code, which may even exit
            end = functools.partial(self._settle, running, error=error)
        self._tidy_sessions(running)
        if end is not None:
            self._from_thread(end)

    def _call_sync(self, running: Running) -> Callable[[], None] | None:
        """Call the body. Return what to do next on the loop; None if an atomic one has already reported."""
        self._renew_sessions()
        if running.context.is_cancelled:
            raise asyncio.CancelledError  # cancelled while the thread was prepared: do not start the body
        if running.transaction is not None:
            self._in_transaction(running, running.transaction)
            return None
        args, kwargs = running.called_with()
        value = running.fn(*args, **kwargs)
        left = self._end_transactions()
        if left:
            if inspect.iscoroutine(value):
                value.close()
            raise OpenTransactionError(running.operation.label, left)
        if inspect.isawaitable(value):
            return functools.partial(self._adopt, running, value, contextvars.copy_context())
        return functools.partial(self._settle, running, stored=running.operation.store(value))

    # The sessions of the thread; a test overrides these.

    def _renew_sessions(self) -> None:
        sessions.renew()

    def _end_transactions(self) -> list[str]:
        return sessions.end_transactions()

    def _tidy_sessions(self, running: Running) -> None:
        left = sessions.tidy()
        if left:
            log.warning("%s left a transaction open on %s; it was rolled back", running, ", ".join(left))

    def _in_transaction(self, running: Running, transaction: atomic.Transaction) -> None:
        operation = running.operation

        def body() -> Stored:
            args, kwargs = running.called_with()
            return operation.store(atomic.call(operation.label, running.fn, args, kwargs))

        transaction.run(body, lambda *outcome: self._from_thread(self._take_in, running, *outcome))

    def _adopt(self, running: Running, value: Awaitable[Any], context: contextvars.Context) -> None:
        """Await on the loop what a sync function returned, as `lambda: fetch(1)` does."""
        running.job = None
        if _key(running.cycle, running.attempt) in self._running and not running.context.is_cancelled:
            self._run_async(running, lambda *args, **kwargs: value, context)
            return
        if inspect.iscoroutine(value):
            value.close()  # the attempt is over, or was cancelled while the function ran
        self._settle(running, error=asyncio.CancelledError())

    def _take_in(self, running: Running, stored: Stored, finished_us: int) -> None:
        """Settle an atomic body that has recorded its success."""
        if running.timer is not None:
            running.timer.cancel()
        if self._is_over(running):
            running.operation.take_in(running.attempt, stored, finished_us)
            self._tally.written(running.cycle.claimed.workflow, [running.attempt])

    def _from_thread(self, callback: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args, context=contextvars.Context())
        except RuntimeError:  # the shift has ended before this thread: its attempt is cancelled or lost
            return

    # Settling

    def _start_clock(self, running: Running) -> None:
        seconds = running.operation.options.timeout.total_seconds()
        running.timer = self._loop.call_later(seconds, self._time_out, running)

    def _start_clock_in_thread(self, running: Running) -> None:
        """Start a sync body's time here: waiting for a thread does not count."""
        if _key(running.cycle, running.attempt) in self._running:
            self._start_clock(running)

    def _time_out(self, running: Running) -> None:
        if running.transaction is not None and not running.transaction.end():
            running.transaction.hurry()  # and it reports the outcome
            return
        running.context.cancel()
        if running.job is not None:
            running.job.give_up()
        self._settle(running, error=StepTimeoutError(running.operation.options.timeout))
        if running.task is not None:
            running.task.cancel()

    def _settle(
        self, running: Running, *, stored: Stored | None = None, error: BaseException | None = None
    ) -> None:
        if running.timer is not None:
            running.timer.cancel()
        if self._is_over(running):
            running.operation.settle(running.attempt, stored=stored, error=error)

    def _is_over(self, running: Running) -> bool:
        """Take in that nobody waits for the body any more; false if that was known."""
        running.job = None  # it refers to the body that it runs: all is freed without a collection
        return self._running.pop(_key(running.cycle, running.attempt), None) is not None

    def _context(
        self, cycle: CycleState, operation: AttemptedOperation, attempt: AttemptRecord
    ) -> StepContext:
        record, claimed = operation.record, cycle.claimed

        def say(level: str, message: str, fields: dict[str, Any]) -> None:
            text = log_line(level, message, fields, self._now_us())
            line = LogLine(*text, step_seq=record.seq, attempt=attempt.number)
            if threading.get_ident() == self._thread:
                cycle.add_log(
                    line
                )  # at once: the body may end, and its instance leave, before the next turn of the loop
            else:
                self._from_thread(cycle.add_log, line)

        return operation.context(
            attempt=attempt.number,
            name=record.name,
            count=record.count,
            options=operation.options,
            instance_id=claimed.id,
            workflow=claimed.workflow,
            generation=claimed.generation,
            _keys_from=claimed.keys_from,
            log=StepLog(say),
            path=operation.path,
        )


def _key(cycle: CycleState, attempt: AttemptRecord) -> Key:
    return cycle.claimed.key, cycle.claimed.fence, attempt.step_seq, attempt.phase, attempt.number
