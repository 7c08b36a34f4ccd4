"""Atomic bodies: a body's database writes and the completion of its step are one transaction.

    begin → the body → checkpoint, with the fence → commit

The start was committed before, as for any body. The outcome recorded here has no delivery number yet: the cycle adds it
with its next checkpoint, or the next replay does after a crash. An atomic rollback is the same with another last
statement: its writes are committed with the mark that its step is rolled back.

Who ends an attempt is decided once. Until the checkpoint, the loop may end it: on a timeout, if the instance was
terminated, or if the worker drains. Its session is then cut off, so that the body's locks are free for the next attempt
although its thread cannot be stopped. From the checkpoint on, only the database decides; if a commit gets no answer,
the row is read.
"""

from __future__ import annotations

import inspect
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, Error, connection, connections, transaction
from psycopg.pq import TransactionStatus

from engine.replay.attempts.attempt import AttemptedOperation
from engine.replay.host import Phase
from engine.replay.records.history import AttemptRecord
from engine.replay.state import CycleState
from engine.values.errors import AtomicStepError, StepConfigError, StepTimeoutError
from engine.values.serialization import Stored
from engine.values.states import AttemptPhase
from engine.worker.bodies import atomic_sql

log = logging.getLogger("engine.atomic")

END_MILLISECONDS = 5_000
ASK_AGAIN_SECONDS = 0.2
WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE|MERGE|REPLACE|TRUNCATE|COPY|CALL|DO)\b", re.IGNORECASE)

CLOSED = "Its body closed the database connection that is needed to record its completion."
SET_TO_ROLL_BACK = (
    "It is marked for rollback, by set_rollback() or by an error in an atomic(savepoint=False). "
    "Raise the error out of the body, or use savepoints."
)
BROKEN = (
    "Its body continued after a database error, which makes a transaction unusable. "
    "Put what may fail into a transaction.atomic() of its own in the body."
)
ENDED = (
    "Its body ended it with its own COMMIT or ROLLBACK. The writes of a COMMIT stay, and the next attempt writes "
    "them again."
)
OVER = "The attempt is over, or another worker has the instance."


class Transaction:
    """One attempt of an atomic body. `run` is called on the body's thread, the rest on the worker's loop."""

    def __init__(self, cycle: CycleState, operation: AttemptedOperation, attempt: AttemptRecord) -> None:
        self._cycle = cycle
        self._step = operation.label
        self._is_rollback = attempt.phase == AttemptPhase.ROLLBACK
        self._timeout = operation.options.timeout
        self._place: dict[str, Any] = {
            "key": cycle.claimed.key,
            "generation": cycle.claimed.generation,
            "fence": cycle.claimed.fence,
            "seq": attempt.step_seq,
            "phase": attempt.phase,
            "number": attempt.number,
        }
        self._lock = threading.Lock()
        self._session: psycopg.Connection[Any] | None = None
        self._pid = 0
        self._is_over = False
        self._is_closing = False
        self._is_late = False
        self._on_commit: list[Any] = []  # on_commit functions in addition to our own

    def end(self) -> bool:
        """End the attempt, so that nothing of it is committed. Return False if the database already decides that."""
        with self._lock:
            if self._is_closing:
                return False
            self._is_over = True
            self._cut()
            return True

    def hurry(self) -> None:
        """Stop waiting for the answer to the commit."""
        with self._lock:
            self._is_late = True
            self._cut()

    def _cut(self) -> None:
        if self._session is not None:
            with (
                suppress(OSError, psycopg.Error),
                socket.socket(fileno=os.dup(self._session.fileno())) as own,
            ):
                own.shutdown(socket.SHUT_RDWR)

    def run(self, body: Callable[[], Stored], committed: Callable[[Stored, int], None]) -> None:
        """Run the body and commit its writes with its completion; `committed` is called before other hooks.

        Raises the body's error; AtomicStepError if there is nothing to commit; StepConfigError if the settings do not
        allow it. If it raises, nothing was committed.
        """
        outcome: list[tuple[Stored, int]] = []
        is_told = False

        def tell() -> None:
            nonlocal is_told
            is_told = True
            committed(*outcome[0])

        try:
            with transaction.atomic(durable=True), _no_other_database(self._step):
                began_us = self._enter()
                transaction.on_commit(tell)
                stored = body()
                outcome.append((stored, self._checkpoint(stored, began_us)))
        except BaseException as error:
            if is_told:  # ours is the first hook: a later one failed
                log.exception('an on_commit function of step "%s" failed', self._step)
            elif outcome and self._is_recorded(error):
                tell()
                self._call_hooks()
            elif self._is_late:
                raise StepTimeoutError(self._timeout) from error
            else:
                raise
        finally:
            with self._lock:
                self._session = None

    def _call_hooks(self) -> None:
        """Call the hooks that Django calls after a commit: for Django, this commit failed."""
        for _, call_hook, is_robust in self._on_commit:
            try:
                call_hook()
            except Exception:
                log.exception('an on_commit function of step "%s" failed', self._step)
                if not is_robust:
                    return

    def _enter(self) -> int:
        with connection.cursor() as cursor:
            cursor.execute(atomic_sql.ENTER, self._place)
            began_us, isolation, is_ours, _ = cursor.fetchone()
        if isolation != "read committed":
            rule = (
                f'The database "{DEFAULT_DB_ALIAS}" is set to the isolation level "{isolation}", under which the '
                "checkpoint would fail after every heartbeat. Remove isolation_level from its OPTIONS, and lock what "
                "the body relies on with select_for_update()."
            )
            raise _misused(self._step, rule)
        with self._lock:
            self._session = connection.connection
            self._pid = connection.connection.info.backend_pid
            if self._is_over or not is_ours:
                raise self._refused(OVER)
        return int(began_us)

    def _checkpoint(self, stored: Stored, began_us: int) -> int:
        """Record the completion and return its time."""
        problem = _problem()
        if problem:
            raise self._refused(problem)
        with self._lock:
            if self._is_over:
                raise self._refused(OVER)
            self._is_closing = True
        statement = atomic_sql.CHECKPOINT_ROLLBACK if self._is_rollback else atomic_sql.CHECKPOINT
        values = {**self._place, "output": stored.text, "began_us": began_us}
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            is_same, finished_us = cursor.fetchone()
        if not is_same:
            raise self._refused(ENDED)
        if finished_us is None:
            raise self._refused(OVER)
        self._on_commit = connection.run_on_commit[1:]  # after our own hook
        return int(finished_us)

    def _refused(self, problem: str) -> AtomicStepError:
        return AtomicStepError(self._step, problem, is_rollback=self._is_rollback)

    def _is_recorded(self, error: BaseException) -> bool:
        """Read from the row whether a failed commit took effect, for as long as it takes to get an answer."""
        log.warning('the commit of step "%s" got no answer: %s', self._step, error)
        while self._cycle.phase is not Phase.LEFT:
            try:
                return self._ask()
            except Error as again:
                log.warning(
                    'the outcome of the commit of step "%s" is unknown; will ask again: %s', self._step, again
                )
                connection.close()
                time.sleep(ASK_AGAIN_SECONDS)
        return False

    def _ask(self) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(atomic_sql.END_SESSION, {"pid": self._pid, "wait": END_MILLISECONDS})
            if cursor.fetchall() == [(False,)]:
                raise Error("the session with the commit does not end")
            cursor.execute(atomic_sql.IS_COMPLETE, self._place)
            return bool(cursor.fetchall() == [(True,)])


def call(step: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the body. Raises if it turns out to be async."""
    value = fn(*args, **kwargs)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise _misused(step, "It needs a sync function: an awaitable would run outside the transaction.")
    return value


def _problem() -> str:
    """Return why nothing can be committed, or an empty string."""
    if connection.closed_in_transaction or connection.connection is None:
        return CLOSED
    if connection.needs_rollback:
        return SET_TO_ROLL_BACK
    match connection.connection.info.transaction_status:
        case TransactionStatus.INERROR:
            return BROKEN
        case TransactionStatus.IDLE:
            return ENDED
        case _:
            return ""


@contextmanager
def _no_other_database(step: str) -> Iterator[None]:
    """Refuse the body's writes to other databases, which the transaction does not cover."""
    with ExitStack() as stack:
        for alias in connections:
            if alias != DEFAULT_DB_ALIAS:
                stack.enter_context(connections[alias].execute_wrapper(_refusing(step, alias)))
        yield


def _refusing(step: str, alias: str) -> Callable[..., Any]:
    def execute(run: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if WRITES.match(str(sql)):
            rule = (
                f'Its transaction covers the database "{DEFAULT_DB_ALIAS}", but its body writes to "{alias}". '
                "Do that in a step of its own."
            )
            raise _misused(step, rule)
        return run(sql, params, many, context)

    return execute


def _misused(step: str, rule: str) -> StepConfigError:
    return StepConfigError("atomic", value=True, rule=rule, what=f'Step "{step}"')
