"""Running the bodies of steps: async ones on the worker's loop, sync ones in threads."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.db import close_old_connections, connections

from engine.errors import NonRetryableError, StepTimeoutError
from engine.replay import attempts, nesting, outcomes
from engine.replay.context import StepContext, StepLog
from engine.replay.cycle import Cycle
from engine.replay.history import AttemptRecord, LogLine
from engine.replay.nesting import Body
from engine.replay.operation import DoOperation
from engine.serialization import Stored
from engine.states import AttemptPhase
from engine.worker import atomic, delays
from engine.worker.arguments import with_context
from engine.worker.threads import Threads

SYNC_BODIES = 16  # threads a worker
ORM_CONTEXTS = 4  # threads, and connections, that the ORM calls of async bodies share


Key = tuple[int, int, str, int]  # instance, step, phase, number


class DelayFunctionError(NonRetryableError):
    """The function given as `delay` failed, so no further attempt is made."""


@dataclass(slots=True, eq=False)
class Running(Body):
    """A body on its way, and what this worker needs to stop it."""

    fn: Callable[..., Any] = field(kw_only=True)
    transaction: atomic.Transaction | None = None
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    in_thread: bool = False
    is_stuck: bool = False
    started_at: float = field(default_factory=time.monotonic)


class Bodies:
    """Runs bodies and settles their attempts, on the worker's loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, now_us: Callable[[], int]) -> None:
        self._loop = loop
        loop.set_task_factory(nesting.make_task)
        self._now_us = now_us
        self._thread = threading.get_ident()
        self.threads = Threads(SYNC_BODIES)
        self._contexts = [ThreadSensitiveContext() for _ in range(ORM_CONTEXTS)]
        self._turn = 0
        self._running: dict[Key, Running] = {}

    @property
    def is_saturated(self) -> bool:
        """Tell whether a sync body that began now would have to wait for a thread."""
        return self.threads.is_saturated

    def stop(self) -> None:
        """Let idle threads end, and the connections of all of them with them; wait for none."""
        self.threads.stop()
        for context in self._contexts:
            executor = SyncToAsync.context_to_thread_executor.pop(context, None)
            if executor is not None:
                executor.submit(connections.close_all)
                executor.shutdown(wait=False)

    def run(self, cycle: Cycle, operation: DoOperation, attempt: AttemptRecord) -> None:
        """Start the body of a recorded attempt."""
        context = self._context(cycle, operation, attempt)
        running = Running(cycle, operation, attempt, context, fn=self._function(operation, attempt))
        self._running[_key(cycle, attempt)] = running
        if operation.options.atomic:
            running.transaction = atomic.Transaction(cycle, operation, attempt)
            self.threads.submit(lambda: self._in_thread(running))
        elif _is_async(running.fn):
            self._start_clock(running)
            self._run_async(running, running.fn)
        else:
            self.threads.submit(lambda: self._in_thread(running))

    def _function(self, operation: DoOperation, attempt: AttemptRecord) -> Callable[..., Any]:
        """Return what to call for this attempt."""
        return operation.fn

    def only_awaits(self, cycle: Cycle, seconds: float) -> bool:
        """Tell whether all that the instance has done for so long is to await async bodies, or its time."""
        if cycle.is_resting:
            return True
        since = time.monotonic() - seconds
        running = [self._running.get(_key(cycle, attempt)) for attempt in cycle.bodies.values()]
        return bool(running) and all(one and one.task and one.started_at < since for one in running)

    def cancel(self, cycle: Cycle, attempt: AttemptRecord) -> bool:
        """Cancel an async body; tell a sync one by `ctx.cancelled`. False if an atomic one is being committed."""
        running = self._running.get(_key(cycle, attempt))
        if running is None:
            return True
        if running.transaction is not None and not running.transaction.end():
            return False
        running.context.cancel()
        if running.task is not None:
            running.task.cancel()
            # A task that is cancelled before its first turn runs nothing, so it does not settle either.
            running.task.add_done_callback(lambda _: self._settle(running, error=asyncio.CancelledError()))
        return True

    def ask_delay(
        self, cycle: Cycle, operation: DoOperation, attempt: AttemptRecord, error: BaseException
    ) -> None:
        """Call the step's delay function and let the cycle back off by its answer."""
        context = self._context(cycle, operation, attempt)
        self._loop.create_task(self._ask_delay(cycle, operation, attempt, context, error))

    # Async bodies

    def _run_async(self, running: Running, fn: Callable[..., Awaitable[Any]]) -> None:
        self._turn = (self._turn + 1) % ORM_CONTEXTS
        running.loop = self._loop
        context = contextvars.copy_context()
        context.run(_enter, running, self._contexts[self._turn])
        running.task = self._loop.create_task(self._await(running, fn), context=context)

    async def _await(self, running: Running, fn: Callable[..., Awaitable[Any]]) -> None:
        operation = running.operation
        try:
            args, kwargs = _called_with(running)
            value = await fn(*args, **kwargs)
            if running.nest is not None:
                await running.nest.rest()
            stored = operation.store(value)
        except BaseException as error:  # noqa: BLE001 - user code: SystemExit is a failed attempt too
            self._settle(running, error=error)
        else:
            self._settle(running, stored=stored)

    # Sync bodies

    def _in_thread(self, running: Running) -> None:
        operation = running.operation
        stored, error = None, None
        if running.context.cancelled.is_set():  # while it waited for a thread
            self._from_thread(self._end_of_thread, running, None, asyncio.CancelledError())
            return
        self._from_thread(self._start_clock_in_thread, running)
        nesting.current.set(running)
        try:
            self._close_old_connections()
            if running.transaction is not None:
                self._in_transaction(running, running.transaction)
                return
            args, kwargs = _called_with(running)
            value = running.fn(*args, **kwargs)
            if inspect.isawaitable(value):
                self._from_thread(self._adopt, running, value)
                return
            stored = operation.store(value)
        except BaseException as raised:  # noqa: BLE001 - user code, which may even exit
            error = raised
        finally:
            nesting.current.set(None)
            self._close_old_connections()
        self._from_thread(self._end_of_thread, running, stored, error)

    def _close_old_connections(self) -> None:
        close_old_connections()

    def _in_transaction(self, running: Running, transaction: atomic.Transaction) -> None:
        operation = running.operation

        def body() -> Stored:
            args, kwargs = _called_with(running)
            return operation.store(atomic.call(operation.record.name, running.fn, args, kwargs))

        transaction.run(body, lambda *outcome: self._from_thread(self._take_in, running, *outcome))

    def _adopt(self, running: Running, value: Awaitable[Any]) -> None:
        """A sync function returned an awaitable, as `lambda: fetch(1)` does: await it on the loop."""
        running.in_thread = False
        if running.is_stuck:
            self.threads.stuck -= 1
        if _key(running.cycle, running.attempt) in self._running:
            self._run_async(running, lambda *args, **kwargs: value)
            if running.context.cancelled.is_set():  # while the function ran
                self.cancel(running.cycle, running.attempt)
        elif inspect.iscoroutine(value):
            value.close()  # the attempt is over

    def _end_of_thread(self, running: Running, stored: Stored | None, error: BaseException | None) -> None:
        if running.is_stuck:
            self.threads.stuck -= 1
        if error is None:
            self._settle(running, stored=stored)
        else:
            self._settle(running, error=error)

    def _take_in(self, running: Running, stored: Stored, finished_us: int) -> None:
        """An atomic body has recorded its success."""
        if running.timer is not None:
            running.timer.cancel()
        if self._running.pop(_key(running.cycle, running.attempt), None) is not None:
            attempts.take_in(running.cycle, running.operation, running.attempt, stored, finished_us)

    def _from_thread(self, callback: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except (
            RuntimeError
        ):  # the shift has ended without this thread: its attempt is closed as cancelled or lost
            return

    # Settling

    def _start_clock(self, running: Running) -> None:
        seconds = running.operation.options.timeout.total_seconds()
        running.timer = self._loop.call_later(seconds, self._time_out, running)

    def _start_clock_in_thread(self, running: Running) -> None:
        """Count a sync body's time from here: what it waited for a thread is not its own."""
        running.in_thread = True
        if _key(running.cycle, running.attempt) in self._running:
            self._start_clock(running)

    def _time_out(self, running: Running) -> None:
        if running.transaction is not None and not running.transaction.end():
            running.transaction.hurry()  # and it says what came of it
            return
        running.context.cancel()
        if running.in_thread:
            running.is_stuck = True
            self.threads.stuck += 1
        self._settle(running, error=StepTimeoutError(running.operation.options.timeout))
        if running.task is not None:
            running.task.cancel()

    def _settle(
        self, running: Running, *, stored: Stored | None = None, error: BaseException | None = None
    ) -> None:
        if running.timer is not None:
            running.timer.cancel()
        if self._running.pop(_key(running.cycle, running.attempt), None) is not None:
            running.operation.settle(running.attempt, stored=stored, error=error)

    async def _ask_delay(
        self,
        cycle: Cycle,
        operation: DoOperation,
        attempt: AttemptRecord,
        context: StepContext,
        error: BaseException,
    ) -> None:
        nesting.current.set(None)  # it may be that of the body, which is over
        try:
            function: Any = operation.options.delay
            base = await delays.ask(
                function, context, error, is_async=_is_async(function), threads=self.threads
            )
        except Exception as raised:  # noqa: BLE001 - user code, or what it returned
            message = f'The delay function of step "{operation.label}" failed, so it is not tried again: '
            problem = DelayFunctionError(message + (str(raised) or type(raised).__name__), cause=raised)
            operation.back_off(attempt, error=problem)
        else:
            operation.back_off(attempt, base=base)

    def _context(self, cycle: Cycle, operation: DoOperation, attempt: AttemptRecord) -> StepContext:
        record, claimed = operation.record, cycle.claimed

        def say(level: str, message: str, fields: dict[str, Any]) -> None:
            text = outcomes.log_line(level, message, fields, self._now_us())
            line = LogLine(*text, step_seq=record.seq, attempt=attempt.number)
            if threading.get_ident() == self._thread:
                cycle.add_log(
                    line
                )  # at once: the body may end, and its instance leave, before the loop turns
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
            log=StepLog(say),
            path=operation.path,
        )


def _enter(running: Running, orm: ThreadSensitiveContext) -> None:
    """Make the present context that of a body."""
    nesting.current.set(running)
    SyncToAsync.thread_sensitive_context.set(orm)


def _called_with(running: Running) -> tuple[tuple[Any, ...], dict[str, Any]]:
    operation = running.operation
    if running.attempt.phase == AttemptPhase.ROLLBACK:
        return (running.context,), {}
    return with_context(running.fn, operation.args, operation.kwargs, running.context)


def _key(cycle: Cycle, attempt: AttemptRecord) -> Key:
    return cycle.claimed.key, attempt.step_seq, attempt.phase, attempt.number


def _is_async(fn: Any) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004
