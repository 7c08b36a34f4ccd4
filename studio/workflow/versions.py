"""The versions of a workflow's handler under which instances started. Bounded: the newest instances of each status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection

from engine.values.states import FINAL, InstanceStatus
from studio.workflows.code_versions import before

COUNTED = 1_000  # of each status
SHOWN = 50
FINAL_STATUSES = ("complete", "errored", "terminated")

# Row comparisons, as with plain equalities the planner may scan the primary key, past the rows of all other workflows.
_VERSIONS = """
SELECT newest.code, state.status, count(*), min(newest.created_at), max(newest.created_at)
  FROM unnest(%s::text[]) AS state(status)
 CROSS JOIN LATERAL (
       SELECT i.code, i.created_at FROM engine_instance i
        WHERE (i.workflow, i.status) >= (%s, state.status)
          AND (i.workflow, i.status) <= (%s, state.status)
        ORDER BY i.workflow, i.status, i.key DESC LIMIT %s) AS newest
 GROUP BY newest.code, state.status
"""


@dataclass(slots=True)
class Version:
    """A version with the instances that started under it. `code` is empty if it was not recorded."""

    code: str
    first_at: datetime | None = None
    last_at: datetime | None = None
    counts: dict[str, int] = field(default_factory=dict)
    is_current: bool = False
    is_kept: bool = False  # its source
    before: str = ""  # the version that workers had before it, if both are kept

    @property
    def open(self) -> int:
        return sum(n for status, n in self.counts.items() if status not in FINAL)

    @property
    def closed(self) -> list[int]:
        return [self.counts.get(status, 0) for status in FINAL_STATUSES]

    def add(self, status: str, n: int, first_at: datetime, last_at: datetime) -> None:
        self.counts[status] = n
        self.first_at = min(self.first_at or first_at, first_at)
        self.last_at = max(self.last_at or last_at, last_at)


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions, that of this code first, then by their latest start. `is_cut`: older instances were not counted."""

    rows: tuple[Version, ...]
    is_cut: bool
    counted: int = COUNTED

    @property
    def is_open_elsewhere(self) -> bool:
        """Whether an instance is open that started under another version than the current one."""
        return any(one.open and not one.is_current for one in self.rows)


def versions_of(name: str, current: str) -> Versions:
    """Count the instances of a workflow by the version of its code. `current` is the fingerprint of this code."""
    statuses = [str(status) for status in InstanceStatus]
    found = {current: Version(current, is_current=True)} if current else {}
    counted: Mapping[str, int] = dict.fromkeys(statuses, 0)
    with connection.cursor() as cursor:
        cursor.execute(_VERSIONS, [statuses, name, name, COUNTED])
        for code, status, n, first_at, last_at in cursor.fetchall():
            found.setdefault(code, Version(code)).add(status, n, first_at, last_at)
            counted = {**counted, status: counted[status] + n}
    rows = sorted(found.values(), key=lambda one: (not one.is_current, _age(one)))[:SHOWN]
    for code, earlier in before(name).items():
        if code in found:
            found[code].is_kept, found[code].before = True, earlier
    return Versions(tuple(rows), any(n == COUNTED for n in counted.values()))


def _age(one: Version) -> float:
    return -one.last_at.timestamp() if one.last_at is not None else 0.0
