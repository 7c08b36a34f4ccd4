"""Make autocommit work for bodies inside the test's transaction.

A worker's connections commit each statement outside of `transaction.atomic()`. In the transaction of a test, each is a
savepoint instead, so a failing statement breaks nothing, and on_commit hooks run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

SAVEPOINT = "reprise_statement"
ITS_OWN = ("SAVEPOINT", "RELEASE", "ROLLBACK")  # statements with which atomic() starts and ends savepoints


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
