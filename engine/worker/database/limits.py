"""What a shift claims: instances of the workflows that it serves, within their limits across all workers.

Instances over a limit stay due, as queued, so capacity is never passed on: a worker that frees some claims again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from engine.worker.database import claim_sql as sql
from engine.worker.database import rows
from engine.worker.database.shift_connection import ShiftConnection

LOOK_AT_ONCE = 1000  # instances of a workflow
LOOK_AGAIN_US = 10_000_000  # before the last one: an instance that was being parked then may be before it


class Limits:
    """The workflows that a shift serves, and their limits."""

    def __init__(self, workflows: Iterable[str], limits: Mapping[str, int]) -> None:
        self._limits = limits
        self._unlimited = sorted(name for name in workflows if name not in limits)
        self._since_us = dict.fromkeys(limits, 0)

    def __bool__(self) -> bool:
        """Return whether any workflow has a limit."""
        return bool(self._limits)

    def __contains__(self, workflow: str) -> bool:
        return workflow in self._limits

    def parameters(self, limited: Iterable[str] | None = None) -> dict[str, object]:
        """Return the workflows as parameters of the statements; optionally only some of those with a limit."""
        wanted = list(self._limits if limited is None else limited)
        return {
            "unlimited": self._unlimited,
            "limited": wanted,
            "limits": [self._limits[name] for name in wanted],
        }

    async def claim(
        self, connection: ShiftConnection, *, quarantined: bool, **values: object
    ) -> list[rows.Row]:
        """Claim what is due within the limits: `limit` instances at most, for `worker_id`, leased for `lease` seconds.

        Instances due within `ahead` seconds are also claimed, queued ones only after `late_new` seconds. With
        `quarantined`, only quarantined instances are claimed.
        """
        found = await self._open(connection, quarantined=quarantined) if self else []
        if not found:
            statement = sql.CLAIM_QUARANTINED if quarantined else sql.CLAIM
            return await _rows(connection, statement, self.parameters([]) | values)
        async with self._locked(connection, found) as locked:
            statement = sql.CLAIM_QUARANTINED if quarantined else sql.CLAIM_WITH_LIMITS
            return await _rows(connection, statement, self.parameters(locked) | values)

    async def _open(self, connection: ShiftConnection, *, quarantined: bool) -> list[str]:
        """Return the workflows with a limit that have something due and free capacity."""
        statement = sql.OPEN_QUARANTINED if quarantined else sql.OPEN
        return [name for (name,) in await _rows(connection, statement, self.parameters())]

    async def next_due(self, connection: ShiftConnection, *, ahead: float) -> int | None:
        """Return when the next instance may be claimed, in microseconds: `ahead` seconds before it is due."""
        statement = sql.NEXT_DUE_WITH_LIMITS if self else sql.NEXT_DUE
        [(next_us,)] = await _rows(connection, statement, self.parameters() | {"ahead": ahead})
        return None if next_us is None else int(next_us)

    async def hold_back(self, connection: ShiftConnection) -> list[int]:
        """Mark due instances of full workflows as queued. Return their keys."""
        keys: list[int] = []
        async with self._locked(connection, list(self._limits)) as locked:
            since = {"since_us": [self._since_us[name] for name in locked], "limit": LOOK_AT_ONCE}
            looked = await _rows(connection, sql.HOLD_BACK, self.parameters(locked) | since)
            for name, count, last_us, keys in looked:  # noqa: B007 - the same keys in each row
                again_us = 0 if count == LOOK_AT_ONCE else LOOK_AGAIN_US
                self._since_us[name] = max(self._since_us[name], last_us - again_us)
        return keys

    @asynccontextmanager
    async def _locked(self, connection: ShiftConnection, names: list[str]) -> AsyncIterator[list[str]]:
        """Take the locks of these workflows for a claim, except those that another session holds."""
        async with connection.transaction():
            yield [name for (name,) in await _rows(connection, sql.LOCK, {"limited": names})]


async def _rows(connection: ShiftConnection, statement: str, values: dict[str, object]) -> list[rows.Row]:
    return await connection.fetch(statement, values)
