"""Atomic bodies: what a body writes to the database and the completion of its step are one transaction.

    begin → the body → checkpoint, with the fence → commit

Its start was committed before, as that of any body. What is recorded here has no turn yet: the cycle gives it one with
its next checkpoint, and after a crash the next replay does. An atomic rollback is the same with another last statement:
what it writes is committed with the mark that its step is undone.

Who ends an attempt is decided once. Until the checkpoint the loop may end it: the time is over, the instance was
terminated, the worker drains. Its session is cut off then, so that what the body has locked is free for the next
attempt although its thread cannot be stopped. From the checkpoint on the database alone decides, and an attempt whose
commit gets no answer is looked up.
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

CLOSED = "Its body closed the database connection, over which its completion is written."
SET_TO_ROLL_BACK = (
    "It is marked for rollback, by set_rollback() or by an error in an atomic(savepoint=False). "
    "Raise the error out of the body, or use savepoints."
)
BROKEN = (
    "Its body went on after an error of the database, which leaves a transaction of no use. "
    "Put what may fail into a transaction.atomic() of its own within the body."
)
ENDED = (
    "Its body ended it by a COMMIT or ROLLBACK of its own. What a COMMIT wrote stays, and is written "
    "again by the next attempt."
)
OVER = "The attempt is over, or another worker has the instance."


class Transaction:
    """One attempt at an atomic body. `run` is called on the body's thread, the rest on the worker's loop."""

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
        self._on_commit: list[Any] = []  # what Django is to call after the commit, besides ourselves

    def end(self) -> bool:
        """End the attempt: nothing of it will be committed. False if that is for the database to say by now."""
        with self._lock:
            if self._is_closing:
                return False
            self._is_over = True
            self._cut()
            return True

    def hurry(self) -> None:
        """Wait no longer for the answer to the commit."""
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
        """Run the body and commit what it wrote, with its completion; `committed` is told before other hooks.

        Raises what the body raised; AtomicStepError where there is nothing to commit; StepConfigError where the
        setting does not allow it. Whatever it raises, nothing was committed.
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
            if is_told:  # the first of all hooks: a later one failed
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
        """Do what Django does after a commit: to it, this one has failed."""
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
                "checkpoint would fail after every heartbeat. Take isolation_level out of its OPTIONS, and lock what "
                "the body relies on by select_for_update()."
            )
            raise _misused(self._step, rule)
        with self._lock:
            self._session = connection.connection
            self._pid = connection.connection.info.backend_pid
            if self._is_over or not is_ours:
                raise self._refused(OVER)
        return int(began_us)

    def _checkpoint(self, stored: Stored, began_us: int) -> int:
        """Record the completion; return its time."""
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
        self._on_commit = connection.run_on_commit[1:]  # after the one by which we are told
        return int(finished_us)

    def _refused(self, problem: str) -> AtomicStepError:
        return AtomicStepError(self._step, problem, is_rollback=self._is_rollback)

    def _is_recorded(self, error: BaseException) -> bool:
        """Ask the row whether a commit that ended in an error has been made; for as long as it takes."""
        log.warning('the commit of step "%s" got no answer: %s', self._step, error)
        while self._cycle.phase is not Phase.LEFT:
            try:
                return self._ask()
            except Error as again:
                log.warning('what became of the commit of step "%s" is asked again: %s', self._step, again)
                connection.close()
                time.sleep(ASK_AGAIN_SECONDS)
        return False

    def _ask(self) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(atomic_sql.END_SESSION, {"pid": self._pid, "wait": END_MILLISECONDS})
            if cursor.fetchall() == [(False,)]:
                raise Error("the session that was told to commit does not end")
            cursor.execute(atomic_sql.IS_COMPLETE, self._place)
            return bool(cursor.fetchall() == [(True,)])


def call(step: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the body, which may turn out to be async."""
    value = fn(*args, **kwargs)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise _misused(step, "It needs a sync function: an awaitable would run outside of the transaction.")
    return value


def _problem() -> str:
    """Tell why there is nothing left to be committed; empty if there is."""
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
    """Refuse writes of the body to other databases, which the transaction does not cover."""
    with ExitStack() as stack:
        for alias in connections:
            if alias != DEFAULT_DB_ALIAS:
                stack.enter_context(connections[alias].execute_wrapper(_refusing(step, alias)))
        yield


def _refusing(step: str, alias: str) -> Callable[..., Any]:
    def execute(run: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if WRITES.match(str(sql)):
            rule = (
                f'Its transaction is one of the database "{DEFAULT_DB_ALIAS}", but its body writes to "{alias}". '
                "Do that in a step of its own."
            )
            raise _misused(step, rule)
        return run(sql, params, many, context)

    return execute


def _misused(step: str, rule: str) -> StepConfigError:
    return StepConfigError("atomic", value=True, rule=rule, what=f'Step "{step}"')
