"""Claims of workflows of which only so many instances may be held at a time, over all workers.

What finds no place stays due, as queued: nobody has to hand a place on. Whoever frees one claims again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from engine.worker import limits_sql as sql
from engine.worker import rows
from engine.worker.line import Line

LOOK_AT_ONCE = 1000  # instances of a workflow
LOOK_AGAIN_US = 10_000_000  # before the last one: what was being parked then may stand before it


class Limits:
    """The workflows that have a limit, and what is claimed of them on the shift's connection for claims."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = limits
        self._since_us = dict.fromkeys(limits, 0)

    def __bool__(self) -> bool:
        return bool(self._limits)

    def __contains__(self, workflow: str) -> bool:
        return workflow in self._limits

    def parameters(self, names: list[str] | None = None) -> dict[str, object]:
        """Name the workflows, or some of them, with their limits, as the statements take them."""
        wanted = list(self._limits) if names is None else names
        return {"limited": wanted, "limits": [self._limits[name] for name in wanted]}

    async def claim(self, line: Line, *, isolated: bool, **values: object) -> list[rows.Row]:
        """Claim what is due and has a place: `limit` in all, for `seat`, with a lease of `lease` seconds.

        What is due for less than `late` seconds is left to other shifts; of what has not begun yet, `late_new` counts.
        """
        find, take = (sql.OPEN_ISOLATED, sql.CLAIM_ISOLATED) if isolated else (sql.OPEN, sql.CLAIM)
        found = await (await line.execute(find, self.parameters())).fetchall()
        if not found:
            return []
        async with self._locked(line, [name for (name,) in found]) as locked:
            if not locked:
                return []
            return await (await line.execute(take, self.parameters(locked) | values)).fetchall()

    async def hold_back(self, line: Line) -> list[int]:
        """Have sleepers whose time has come say that they wait for a place, where there is none; return the keys."""
        keys: list[int] = []
        async with self._locked(line, list(self._limits)) as locked:
            since = {"since_us": [self._since_us[name] for name in locked], "limit": LOOK_AT_ONCE}
            looked = await line.execute(sql.HOLD_BACK, self.parameters(locked) | since)
            for name, count, last_us, keys in await looked.fetchall():  # noqa: B007 - the same keys in each row
                again_us = 0 if count == LOOK_AT_ONCE else LOOK_AGAIN_US
                self._since_us[name] = max(self._since_us[name], last_us - again_us)
        return keys

    @asynccontextmanager
    async def _locked(self, line: Line, names: list[str]) -> AsyncIterator[list[str]]:
        """Be the only one that claims of these workflows; not of those where somebody else is."""
        async with line.transaction():
            found = await line.execute(sql.LOCK, {"limited": names})
            yield [name for (name,) in await found.fetchall()]
