"""The bodies of a test, real or mocked, in the test's own thread and transaction.

A worker's connections commit each statement outside of `transaction.atomic()`. In the transaction of a test, each is a
savepoint instead, so a failing statement breaks nothing, and on_commit hooks run.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.db import connection

from engine.replay.attempts.attempt import AttemptedOperation
from engine.replay.records.history import AttemptRecord
from engine.replay.state import CycleState
from engine.testing.crashes import Crash, Crashes
from engine.testing.loop import Inline, InlineThreads, StandingLoop
from engine.testing.mocks import Mocks
from engine.values.errors import ControlFlow
from engine.worker.bodies.attempt import Bodies
from engine.worker.bodies.running import Running

SAVEPOINT = "reprise_statement"
ITS_OWN = ("SAVEPOINT", "RELEASE", "ROLLBACK")  # statements with which atomic() starts and ends savepoints

# These are for the worker; any other BaseException, such as that of pytest.fail(), is for the test.
OF_THE_ENGINE = (Exception, ControlFlow, asyncio.CancelledError, GeneratorExit, SystemExit)


class InlineCalls:
    """Replaces `engine.worker.bodies.orm_calls.BodyCalls`, for all bodies."""

    def __init__(self, executor: Inline) -> None:
        self.context = ThreadSensitiveContext()
        SyncToAsync.context_to_thread_executor[self.context] = executor

    def leave(self) -> None:
        """Do nothing: other bodies continue to use it."""

    def stop(self) -> None:
        SyncToAsync.context_to_thread_executor.pop(self.context, None)


class InlineBodies(Bodies):
    """Runs sync bodies and the ORM calls of async ones, one at a time, in the test's thread."""

    def __init__(
        self,
        loop: StandingLoop,
        now_us: Callable[[], int],
        mocks: Mocks,
        crashes: Crashes,
        *,
        die: Callable[[Crash], None],
        stop: Callable[[BaseException], None],
        look: Callable[[], None],
    ) -> None:
        super().__init__(loop, now_us)
        self._standing = loop
        self._mocks = mocks
        self._crashes = crashes
        self._die = die
        self._stop = stop
        self._look = look
        self.threads = self.delays.threads = InlineThreads(loop, self._job)  # type: ignore[assignment]
        self._calls = InlineCalls(Inline(loop, self._call))

    @property
    def is_saturated(self) -> bool:
        return False

    def stop(self) -> None:
        self._calls.stop()

    def _take_executor(self) -> None:
        """Do nothing: what a body itself sends to a thread runs in a thread."""

    def _orm_calls(self) -> InlineCalls:  # type: ignore[override]
        return self._calls

    # It is the test's connection.

    def _renew_sessions(self) -> None:
        """It stays."""

    def _end_transactions(self) -> list[str]:
        return []

    def _tidy_sessions(self, running: Running) -> None:
        """It stays."""

    def run(self, cycle: CycleState, operation: AttemptedOperation, attempt: AttemptRecord) -> None:
        crash = self._crashes.at_body(operation, attempt)
        if crash is None:
            super().run(cycle, operation, attempt)
        else:
            self._die(crash)

    def _start_clock(self, running: Running) -> None:
        super()._start_clock(running)
        if running.timer is not None:
            self._standing.limits(running.timer)

    def _function(self, operation: AttemptedOperation, attempt: AttemptRecord) -> Callable[..., Any]:
        mock = self._mocks.of_step(operation, attempt)
        fn = operation.fn if mock is None else mock.outcome(operation.options.timeout)
        return self._watched(fn, is_atomic=operation.options.atomic)

    def _watched(self, fn: Callable[..., Any], *, is_atomic: bool) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None)):  # noqa: B004

            @functools.wraps(fn)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                try:
                    return await fn(*args, **kwargs)
                except BaseException as error:
                    self._tell(error)
                    raise

            return call_async

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                if is_atomic:  # it is a transaction
                    return fn(*args, **kwargs)
                with statements_on_their_own(), as_if_committed():
                    return fn(*args, **kwargs)
            except BaseException as error:
                self._tell(error)
                raise

        return call

    def _tell(self, error: BaseException) -> None:
        if not isinstance(error, OF_THE_ENGINE):
            self._stop(error)

    def _job(self, run: Callable[[], None]) -> None:
        """Run a sync body with everything around it."""
        with self._standing.suspended(), as_if_committed():
            run()
        self._look()

    def _call(self, run: Callable[[], None]) -> None:
        """Run what an async body sends to a thread: its ORM calls."""
        with self._standing.suspended(), statements_on_their_own(), as_if_committed():
            run()
        self._look()


@contextmanager
def as_if_committed() -> Iterator[None]:
    """Call the on_commit hooks of the block, as a commit would."""
    before = len(connection.run_on_commit)
    yield
    while connection.in_atomic_block and len(connection.run_on_commit) > before:
        _, call, *_ = connection.run_on_commit.pop(before)
        call()


@contextmanager
def statements_on_their_own() -> Iterator[None]:
    """Let a failing statement undo only itself."""
    if not connection.in_atomic_block:
        yield
        return
    depth = len(connection.savepoint_ids)

    def execute(run: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        real = connection.connection
        if len(connection.savepoint_ids) > depth or real is None or str(sql).startswith(ITS_OWN):
            return run(sql, params, many, context)
        connection.needs_rollback = False  # what failed before is already undone
        real.execute(f"SAVEPOINT {SAVEPOINT}")
        try:
            found = run(sql, params, many, context)
        except BaseException:
            real.execute(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}; RELEASE SAVEPOINT {SAVEPOINT}")
            raise
        real.execute(f"RELEASE SAVEPOINT {SAVEPOINT}")
        return found

    with connection.execute_wrapper(execute):
        try:
            yield
        finally:
            if len(connection.savepoint_ids) == depth:
                connection.needs_rollback = False
