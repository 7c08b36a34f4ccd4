"""Triggers that refuse every change of a status which `engine.values.states` does not name.

The database of the cases has them, so that each of those stories holds the engine's statements to the tables; a
statement that breaks them fails as it would on a constraint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from django.db import connection

from engine.values import states

GUARDED: Mapping[str, tuple[Mapping[tuple[str, str], str], Iterable[str]]] = {
    "engine_instance": (states.CHANGES, states.BEGINNINGS),
    "engine_step": (states.STEP_CHANGES, states.STEP_BEGINNINGS),
    "engine_attempt": (states.ATTEMPT_CHANGES, states.ATTEMPT_BEGINNINGS),
}


@contextmanager
def guarded_statuses() -> Iterator[None]:
    """Install the triggers in the database, until the end."""
    _execute(statement for table in GUARDED for statement in _guards(table))
    try:
        yield
    finally:
        _execute(f"DROP TRIGGER {trigger} ON {table}" for table in GUARDED for trigger in _names(table))


@contextmanager
def unguarded(table: str) -> Iterator[None]:
    """Let a case write rows of this table itself that the engine would not."""
    _execute(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}" for trigger in _names(table))
    try:
        yield
    finally:
        _execute(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}" for trigger in _names(table))


def _names(table: str) -> tuple[str, str]:
    return f"{table}_guard_changes", f"{table}_guard_beginnings"


def _guards(table: str) -> Iterator[str]:
    changes, beginnings = GUARDED[table]
    of_changes, of_beginnings = _names(table)
    pairs = _array(f"{before}>{after}" for before, after in changes)
    # AFTER an insert: before it, an upsert counts as one, too. The condition is all: a row that keeps to the tables
    # costs no call.
    yield f"""
        CREATE TRIGGER {of_changes} BEFORE UPDATE OF status ON {table} FOR EACH ROW
        WHEN (OLD.status <> NEW.status
              AND OLD.status || '>' || NEW.status <> ALL ({pairs}))
        EXECUTE FUNCTION engine_refuse('engine.values.states knows no such change.')
    """
    yield f"""
        CREATE TRIGGER {of_beginnings} AFTER INSERT ON {table} FOR EACH ROW
        WHEN (NEW.status <> ALL ({_array(beginnings)}))
        EXECUTE FUNCTION engine_refuse('engine.values.states knows no such beginning.')
    """


def _array(texts: Iterable[str]) -> str:
    quoted = ", ".join(f"'{text}'" for text in texts)
    return f"ARRAY[{quoted}]"


def _execute(statements: Iterable[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
