"""All instances of the made-up shop, from the oldest to the newest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from engine.values.fingerprint import Failed
from tests.bench.many import fates
from tests.bench.many.fates import Fate
from tests.bench.many.flows import FLOWS, WITH_BURST, Flow
from tests.bench.many.life import HOUR, SECOND, Life, Rows, World
from tests.bench.many.lines import COLUMNS
from tests.bench.many.timeline import Timeline

SPAN = 90 * 24 * HOUR
BURST = 37
BURST_SPAN = 55 * 60 * SECOND
MOST_RUNNING = 400
BATCH = 40_000  # steps
SHORTEST = 3  # steps of an instance


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is, and what makes it the same again."""

    instances: int = 1_000_000
    steps_each: int = 10
    errors: int = 200_000
    seed: int = 4711


class Shop:
    """Makes the rows in batches, each of which a transaction can write."""

    def __init__(self, size: Size, now: int, first_keys: dict[str, int]) -> None:
        self.size, self.now = size, now
        self.rng = Random(size.seed)
        self.timeline = Timeline(first_keys)
        self.groups: dict[str, tuple[Failed, int]] = {}
        self.rows: Rows = {table: [] for table in COLUMNS}
        self.made = self.instances = self.steps = self.owed_errors = 0
        self.burst = min(BURST, size.errors, size.instances // 10)
        self.wanted = size.instances - self.burst  # besides those of the burst

    def batches(self) -> Iterator[Rows]:
        """Yield all rows by table; a batch refers only to itself and to those before it."""
        burst = [self.now - BURST_SPAN * left // self.burst for left in range(self.burst, 0, -1)]
        while self.made < self.wanted:
            created = self._moment(self.made / self.wanted)
            while burst and burst[0] <= created:
                flow = WITH_BURST[0] if len(burst) % 3 else WITH_BURST[1]
                self._make(burst.pop(0), flow, fates.err_in_burst)
            flow, fate = self._choose()
            self.made += self._make(created, flow, fate)
            if len(self.rows["engine_step"]) >= BATCH:
                yield self._batch(created)
        for at in burst:
            self._make(at, WITH_BURST[0], fates.err_in_burst)
        yield self._batch(None)

    def _make(self, created: int, flow: Flow, fate: Fate | None) -> int:
        """Make an instance and its children; return how many they are."""
        world = World(self.rows, self.timeline, self.rng, self.now, self.groups)
        before = len(self.rows["engine_instance"]), len(self.rows["engine_step"])
        life = Life(world, flow, created)
        calls = life.calls(self._length())
        fails = fate is None and self.owed_errors >= self.wanted
        chosen = fate or fates.draw(life, fails=fails)
        if not chosen(life, calls):  # its workflow has no such step
            (fates.complete_after_failures if fails else fates.complete)(life, calls)
        made = len(self.rows["engine_instance"]) - before[0]
        self.instances += made
        self.steps += len(self.rows["engine_step"]) - before[1]
        if fate is not fates.err_in_burst:
            self.owed_errors += made * (self.size.errors - self.burst) - fails * self.wanted
        return made

    def _choose(self) -> tuple[Flow, Fate | None]:
        flow = self.rng.choices(FLOWS, _SHARES)[0]
        left, running = self.wanted - self.made, self._running()
        if left <= self._queued():
            return flow, fates.queue
        return flow, fates.run if left <= self._queued() + running else None

    def _queued(self) -> int:
        return max(3, self.size.instances // 1000)

    def _running(self) -> int:
        return min(MOST_RUNNING, max(3, self.size.instances // 2000))

    def _length(self) -> int:
        """Return how many steps the next instance has, so that all together come near to what is wanted."""
        each = self.size.steps_each
        more = each * 2 // 5 if self.steps < (self.instances + 1) * each else -2
        return max(SHORTEST, each + more + self.rng.randint(-2, 2))

    def _moment(self, position: float) -> int:
        return self.now - int(SPAN * (1 - position) ** 2)

    def _batch(self, until: int | None) -> Rows:
        """Take the rows so far, with the events and the audit trail up to a time."""
        for table, line in self.timeline.until(until):
            self.rows[table].append(line)
        taken, self.rows = self.rows, {table: [] for table in COLUMNS}
        return taken


_SHARES = [flow.share for flow in FLOWS]
