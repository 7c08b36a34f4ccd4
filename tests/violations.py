"""Which rows break an invariant of the engine: all are checked at once, as tests do after each story."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection

from engine.invariants import INVARIANTS, Invariant

VALUES = {"grace": 60, "skew": 5, "limited": [], "limits": []}


def violations() -> list[str]:
    """Return a sentence for each row that breaks an invariant."""
    return offenders("violations", INVARIANTS)


def offenders(name: str, invariants: Iterable[Invariant]) -> list[str]:
    """Return a sentence for each row that breaks one of these invariants.

    They are planned once per connection, under the name: planning takes ten times as long as the answer.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_prepared_statements WHERE name = %s", [name])
        if cursor.fetchone() is None:
            cursor.execute(f"PREPARE {name} AS {_question(invariants)}")
        cursor.execute(f"EXECUTE {name}")
        return [f"{name}: #{key} {detail}" for name, key, detail in cursor.fetchall()]


def _question(invariants: Iterable[Invariant]) -> str:
    parts = (
        f"SELECT '{one.name}', v.key::bigint, v.detail::text FROM ({one.query}) AS v (key, detail)"
        for one in invariants
    )
    return str(connection.ops.compose_sql(" UNION ALL ".join(parts), VALUES))
