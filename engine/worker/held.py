"""The rows of held instances: taken away, signalled, paused, or held although no cycle drives them."""

from __future__ import annotations

from engine.replay.cycle import Cycle
from engine.replay.host import Phase
from engine.values.states import InstanceStatus
from engine.worker.cycle_host import CycleHost
from engine.worker.database.reader import Reader


class Held:
    """Compares the cycles of a worker with the rows that it holds."""

    def __init__(self, host: CycleHost, reader: Reader) -> None:
        self._host = host
        self._reader = reader
        self._given_up: dict[int, tuple[int, str]] = {}  # by instance: fence and reason

    async def look(self) -> dict[int, int]:
        """Pass each row to its cycle. Return the instances held without a cycle, with their fences."""
        known = dict(self._host.cycles)
        held = await self._reader.held()
        for key, cycle in known.items():
            if cycle.phase in (Phase.LEAVING, Phase.LEFT) or self._host.cycles.get(key) is not cycle:
                continue
            row = held.get(key)
            if row is None or row.fence != cycle.claimed.fence:
                cycle.exit.abandon()
            else:
                cycle.on_signals(row.status, row.signals, row.ends_as)
                if row.is_to_leave:
                    cycle.exit.quiesce(InstanceStatus.QUEUED)
        return {
            row.key: row.fence
            for row in held.values()
            if row.key not in known or row.fence > known[row.key].claimed.fence
        }

    def give_up(self, cycle: Cycle, reason: str) -> None:
        """Note that the engine has given up an instance, so that it is paused for this reason."""
        self._given_up[cycle.claimed.key] = cycle.claimed.fence, reason

    async def let_go(self, strays: dict[int, int]) -> list[int]:
        """Release these instances, or pause those that were given up. Return those whose rows were not locked."""
        self._given_up = {key: why for key, why in self._given_up.items() if why[0] == strays.get(key)}
        if not strays:
            return []
        return await self._reader.let_go(
            {key: self._given_up.get(key, (fence, None)) for key, fence in strays.items()}
        )
