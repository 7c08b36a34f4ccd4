"""What a shift claims: instances of the workflows that it serves, of some only so many at a time, over all workers.

What finds no place stays due, as queued: nobody has to hand a place on. Whoever frees one claims again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from engine.worker.database import claim_sql as sql
from engine.worker.database import rows
from engine.worker.database.line import Line

LOOK_AT_ONCE = 1000  # instances of a workflow
LOOK_AGAIN_US = 10_000_000  # before the last one: what was being parked then may stand before it


class Limits:
    """The workflows that a shift serves, and the limits of those that have one."""

    def __init__(self, workflows: Iterable[str], limits: Mapping[str, int]) -> None:
        self._limits = limits
        self._unlimited = sorted(name for name in workflows if name not in limits)
        self._since_us = dict.fromkeys(limits, 0)

    def __bool__(self) -> bool:
        """Tell whether any workflow has a limit."""
        return bool(self._limits)

    def __contains__(self, workflow: str) -> bool:
        return workflow in self._limits

    def parameters(self, limited: Iterable[str] | None = None) -> dict[str, object]:
        """Name the workflows as the statements take them; of those with a limit only some, if these are given."""
        wanted = list(self._limits if limited is None else limited)
        return {
            "unlimited": self._unlimited,
            "limited": wanted,
            "limits": [self._limits[name] for name in wanted],
        }

    async def claim(self, line: Line, *, quarantined: bool, **values: object) -> list[rows.Row]:
        """Claim what is due and has a place: `limit` in all, for `worker_id`, with a lease of `lease` seconds.

        What is due within `ahead` seconds is claimed too, and what is queued only after `late_new` seconds. With
        `quarantined`, only quarantined instances are claimed.
        """
        found = await self._open(line, quarantined=quarantined) if self else []
        if not found:
            statement = sql.CLAIM_QUARANTINED if quarantined else sql.CLAIM
            return await _rows(line, statement, self.parameters([]) | values)
        async with self._locked(line, found) as locked:
            statement = sql.CLAIM_QUARANTINED if quarantined else sql.CLAIM_WITH_LIMITS
            return await _rows(line, statement, self.parameters(locked) | values)

    async def _open(self, line: Line, *, quarantined: bool) -> list[str]:
        """Return the workflows with a limit of which something is due and has a place."""
        statement = sql.OPEN_QUARANTINED if quarantined else sql.OPEN
        return [name for (name,) in await _rows(line, statement, self.parameters())]

    async def next_due(self, line: Line, *, ahead: float) -> int | None:
        """Return when the next one may be claimed, in microseconds: `ahead` seconds before it is due."""
        statement = sql.NEXT_DUE_WITH_LIMITS if self else sql.NEXT_DUE
        [(next_us,)] = await _rows(line, statement, self.parameters() | {"ahead": ahead})
        return None if next_us is None else int(next_us)

    async def hold_back(self, line: Line) -> list[int]:
        """Have sleepers whose time has come say that they wait for a place, where there is none; return the keys."""
        keys: list[int] = []
        async with self._locked(line, list(self._limits)) as locked:
            since = {"since_us": [self._since_us[name] for name in locked], "limit": LOOK_AT_ONCE}
            looked = await _rows(line, sql.HOLD_BACK, self.parameters(locked) | since)
            for name, count, last_us, keys in looked:  # noqa: B007 - the same keys in each row
                again_us = 0 if count == LOOK_AT_ONCE else LOOK_AGAIN_US
                self._since_us[name] = max(self._since_us[name], last_us - again_us)
        return keys

    @asynccontextmanager
    async def _locked(self, line: Line, names: list[str]) -> AsyncIterator[list[str]]:
        """Be the only one that claims of these workflows; not of those where somebody else is."""
        async with line.transaction():
            yield [name for (name,) in await _rows(line, sql.LOCK, {"limited": names})]


async def _rows(line: Line, statement: str, values: dict[str, object]) -> list[rows.Row]:
    return await (await line.execute(statement, values)).fetchall()
