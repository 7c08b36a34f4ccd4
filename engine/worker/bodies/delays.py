"""Delay functions: they return how long to wait after an error, and have little time for it.

Sync ones have threads of their own, so that they do not wait for bodies.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from contextvars import Context
from datetime import timedelta
from typing import Any

from asgiref.sync import SyncToAsync

from engine.declare.context import StepContext
from engine.replay.attempts.attempt import AttemptedOperation
from engine.replay.records.history import AttemptRecord
from engine.values.durations import parse_duration
from engine.values.errors import DelayFunctionError, NonRetryableError
from engine.worker.bodies.orm_calls import BodyCalls
from engine.worker.bodies.running import is_async
from engine.worker.bodies.threads import Threads

LIMIT_SECONDS = 5.0  # from the start of the function
THREADS = 2
LOOK_AGAIN_SECONDS = 1.0  # to check whether a thread can still become free


class NoAnswerError(Exception):
    """The function did not answer in time."""


class Delays:
    """Calls delay functions, on the loop or on threads of their own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, orm_calls: Callable[[], BodyCalls]) -> None:
        self._loop = loop
        self._orm_calls = orm_calls
        self.threads = Threads(THREADS, name="delay", keeps_sessions=False, replaces_stuck=False)
        self._asking: set[asyncio.Task[None]] = set()
        self._tasks: dict[asyncio.Task[Any], object] = {}
        self._deaf: set[asyncio.Task[Any]] = set()  # cancelled ones that still run

    @property
    def left(self) -> list[object]:
        """Return what still runs, by its `what`."""
        return [*self._tasks.values(), *self.threads.left]

    @property
    def given_up(self) -> list[object]:
        """Return what still runs although it was given up, by its `what`."""
        return [*(self._tasks[task] for task in self._deaf), *self.threads.given_up]

    def stop(self) -> None:
        self.threads.stop()
        for task in (*self._asking, *self._tasks):
            task.cancel()

    def ask(
        self,
        operation: AttemptedOperation,
        attempt: AttemptRecord,
        context: StepContext,
        error: BaseException,
    ) -> None:
        """Call the step's delay function, and pass the result to the operation."""
        asking = self._ask(operation, attempt, context, error)
        task = self._loop.create_task(asking, context=Context())
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(
        self,
        operation: AttemptedOperation,
        attempt: AttemptRecord,
        context: StepContext,
        error: BaseException,
    ) -> None:
        function: Any = operation.options.delay
        what = f'the delay function of step "{operation.label}"'
        try:
            call = functools.partial(function, context, error)
            delay = await self.answer(call, is_async=is_async(function), what=what)
        except NoAnswerError:
            text = (
                f"The delay function did not answer within {LIMIT_SECONDS:g} s, so the default delay applies."
            )
            context.log.warning(text)
            operation.back_off(attempt)
        except Exception as raised:  # noqa: BLE001 - user code, or what it returned
            if raised is not error and not isinstance(raised, NonRetryableError):
                operation.give_up(attempt, DelayFunctionError(operation.label, raised))
                return
            if raised is not error:
                context.log.info(f"The delay function ended the attempts: {raised}")
            operation.give_up(attempt)
        else:
            operation.back_off(attempt, delay=delay)

    async def answer(
        self, function: Callable[[], Any], *, is_async: bool = False, what: object = ""
    ) -> timedelta:
        """Return its answer. Raises its error, ValueError if the answer is not a duration, or NoAnswerError."""
        answer = function() if is_async else await self._on_thread(function, what)
        if inspect.isawaitable(answer):  # also that of `lambda ctx, error: ask(error)`
            answer = await self._on_loop(answer, what)
        return parse_duration(answer, what="delay")

    async def _on_loop(self, answer: Awaitable[Any], what: object) -> Any:
        calls, context = self._orm_calls(), Context()
        context.run(SyncToAsync.thread_sensitive_context.set, calls.context)
        task = self._loop.create_task(_awaited(answer), context=context)
        self._tasks[task] = what
        task.add_done_callback(lambda task: self._ended(task, calls))
        await asyncio.wait({task}, timeout=LIMIT_SECONDS)
        if not task.done():
            task.cancel()  # which may take a while
            self._deaf.add(task)
            raise NoAnswerError
        if task.cancelled():
            raise RuntimeError("It was cancelled.")
        return task.result()

    def _ended(self, task: asyncio.Task[Any], calls: BodyCalls) -> None:
        del self._tasks[task]
        self._deaf.discard(task)
        calls.leave()
        if not task.cancelled():
            task.exception()  # otherwise asyncio warns about an exception that was never retrieved

    async def _on_thread(self, function: Callable[[], Any], what: object) -> Any:
        call = _Call(self.threads, function, what)
        try:
            while not call.begun.done():
                if self.threads.stuck >= THREADS:
                    raise NoAnswerError
                await asyncio.wait({call.begun}, timeout=LOOK_AGAIN_SECONDS)
            await asyncio.wait({call.answer}, timeout=LIMIT_SECONDS)
            if not call.answer.done():
                raise NoAnswerError
            return call.answer.result()
        finally:
            call.give_up()


class _Call:
    """One call on a thread."""

    def __init__(self, threads: Threads, function: Callable[[], Any], what: object) -> None:
        self._loop = asyncio.get_running_loop()
        self._function = function
        self.begun: asyncio.Future[None] = self._loop.create_future()
        self.answer: asyncio.Future[Any] = self._loop.create_future()
        self._job = threads.submit(self._run, what)

    def give_up(self) -> None:
        """Stop waiting for it, unless it has ended."""
        if self.answer.cancel():
            self._job.give_up()

    def _run(self) -> None:
        self._tell(self.begun.set_result, None)
        try:
            value = Context().run(self._function)
        except BaseException as raised:  # noqa: BLE001 - user code
            # A future does not accept StopIteration, and the loop must not exit because of it.
            is_plain = isinstance(raised, Exception) and not isinstance(raised, StopIteration)
            self._tell(self._set, None, raised if is_plain else RuntimeError(repr(raised)))
        else:
            self._tell(self._set, value, None)

    def _tell(self, callback: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args, context=Context())
        except RuntimeError:  # the shift has ended before this thread
            return

    def _set(self, value: Any, error: BaseException | None) -> None:
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(value)
        else:
            self.answer.set_exception(error)


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer
