"""An invariant of the tables, and a function that checks it on a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

OFFENDERS = 5
NO_LIMITS: Mapping[str, int] = MappingProxyType({})


class Cursor(Protocol):
    """A cursor of Django or psycopg."""

    def execute(self, query: Any, params: Any = None, /) -> Any: ...
    def fetchall(self) -> Sequence[tuple[Any, ...]]: ...


@dataclass(frozen=True, slots=True)
class Invariant:
    """A sentence, and a query that finds violations: rows of an instance's key and a description.

    `id` groups invariants of one subject. Parameters of the query: `grace`, seconds that something may be overdue;
    `skew`, seconds by which a worker's estimate of the database's clock may differ; `limited` and `limits`, the
    workflows with `max_running` and their limits, which only the code knows.
    """

    id: str
    name: str
    sentence: str
    query: str


@dataclass(frozen=True, slots=True)
class Offender:
    """An instance that violates an invariant. `workflow` and `id` are None if its row does not exist."""

    key: int
    workflow: str | None
    id: str | None
    detail: str

    def __str__(self) -> str:
        return f"#{self.key}" if self.workflow is None else f"{self.workflow}/{self.id}"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: how many rows violate the invariant, and the first of them."""

    invariant: Invariant
    count: int
    offenders: tuple[Offender, ...]


FIRST = """
SELECT v.key, i.workflow, i.id, v.detail, v.total
FROM (
    SELECT key, detail, count(*) OVER () AS total FROM ({query}) AS violation (key, detail)
    ORDER BY key, detail LIMIT %(offenders)s
) AS v
LEFT JOIN engine_instance i ON i.key = v.key
ORDER BY v.key, v.detail
"""


def look(
    cursor: Cursor,
    invariant: Invariant,
    *,
    grace: float = 60,
    skew: float = 5,
    offenders: int = OFFENDERS,
    limits: Mapping[str, int] = NO_LIMITS,
) -> Finding:
    """Check the invariant on the cursor's database. `limits` come from `engine.workflows.limits()`."""
    statement = FIRST.format(query=invariant.query)
    of_code = {"limited": [*limits], "limits": [*limits.values()]}
    cursor.execute(statement, {"grace": grace, "skew": skew, "offenders": offenders, **of_code})
    rows = cursor.fetchall()
    found = tuple(Offender(*row[:4]) for row in rows)
    return Finding(invariant, rows[0][4] if rows else 0, found)
