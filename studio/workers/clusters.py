"""The workers as the page shows them: by cluster, with their slots and what runs in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.models import Instance
from engine.status.usual import LongStep

CELLS = 16  # up to this many slots are drawn one by one
LINKS = 2  # to instances, the rest is a number
BEAT = timedelta(seconds=5)
LATE_AFTER = 2 * BEAT
SILENT_AFTER = 4 * BEAT


@dataclass(frozen=True, slots=True)
class Process:
    """A worker as the tables have it."""

    key: int
    name: str
    cluster: str
    slots: int
    held: int
    workflows: tuple[str, ...]
    started_at: datetime
    seen_at: datetime
    code: str = ""
    memory: int | None = None  # bytes
    is_draining: bool = False
    drained_by: str = ""
    reason: str = ""

    @property
    def host(self) -> str:
        return self.name.rpartition(":")[0] or self.name

    @property
    def process_id(self) -> str:
        return self.name.rpartition(":")[2]


@dataclass(frozen=True, slots=True)
class Held:
    """An instance in a slot. `instance` is None if the user may not see it."""

    instance: Instance | None
    long: LongStep | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A worker, and what it runs: the longest-running steps first."""

    process: Process
    state: str  # up, draining, late or silent
    runs: tuple[Held, ...]
    is_older: bool = False  # its code
    alone_serves: tuple[str, ...] = ()  # workflows that would have no worker without it

    @property
    def cells(self) -> list[str]:
        """Return the kind of each slot, if there are few: long, busy or free."""
        if self.process.slots > CELLS:
            return []
        long = min(sum(one.long is not None for one in self.runs), self.busy)
        return ["long"] * long + ["busy"] * (self.busy - long) + ["free"] * (self.process.slots - self.busy)

    @property
    def long(self) -> int:
        return sum(one.long is not None for one in self.runs)

    @property
    def busy(self) -> int:
        """Count the slots in use: a worker may hold more instances than it has slots."""
        return min(self.process.held, self.process.slots)

    @property
    def shown(self) -> tuple[Held, ...]:
        return self.runs[:LINKS]

    @property
    def others(self) -> int:
        return max(max(self.process.held, len(self.runs)) - len(self.shown), 0)

    @property
    def look(self) -> str:
        """Return the status that gives its color and icon."""
        return {"up": "complete", "draining": "paused", "late": "retrying", "silent": "errored"}[self.state]

    @property
    def beat_look(self) -> str:
        """Return the status that gives the heartbeat its color, also while it drains."""
        return {"late": "retrying", "silent": "errored"}.get(self.state, "complete")


@dataclass(frozen=True, slots=True)
class Cluster:
    """The workers of a cluster."""

    name: str
    lines: tuple[Line, ...]
    workflows: int
    versions: tuple[str, ...]  # of the code, the newest first

    @property
    def slots(self) -> int:
        return sum(one.process.slots for one in self.lines)

    @property
    def busy(self) -> int:
        return sum(one.busy for one in self.lines)

    @property
    def is_full(self) -> bool:
        return bool(self.lines) and self.busy >= self.slots

    @property
    def has_older(self) -> bool:
        return any(one.is_older for one in self.lines)


def clusters(
    processes: Sequence[Process],
    held: Mapping[int, Sequence[Held]],
    *,
    now: datetime,
    visible: frozenset[str],
) -> list[Cluster]:
    """Arrange workers by cluster. `held` has what each runs, by its key."""
    newest = _newest_code(processes)
    serving: dict[str, set[int]] = {}
    for one in processes:
        if not one.is_draining and now - one.seen_at <= SILENT_AFTER:
            for name in one.workflows:
                serving.setdefault(name, set()).add(one.key)
    grouped: dict[str, list[Line]] = {}
    for one in sorted(processes, key=lambda one: (one.cluster, one.host, one.started_at, one.key)):
        line = Line(
            one,
            _state(one, now),
            tuple(sorted(held.get(one.key, ()), key=_order)),
            is_older=bool(one.code) and one.code != newest,
            alone_serves=tuple(
                name for name in one.workflows if name in visible and serving.get(name) == {one.key}
            ),
        )
        grouped.setdefault(one.cluster, []).append(line)
    return [_cluster(name, lines) for name, lines in grouped.items()]


def _cluster(name: str, lines: Sequence[Line]) -> Cluster:
    newest_first = sorted(lines, key=lambda line: line.process.started_at, reverse=True)
    return Cluster(
        name,
        tuple(lines),
        len({workflow for line in lines for workflow in line.process.workflows}),
        tuple(dict.fromkeys(line.process.code for line in newest_first if line.process.code)),
    )


def _newest_code(processes: Sequence[Process]) -> str:
    """Return the code of the worker that started last: a release starts workers, it ends none by itself."""
    with_code = [one for one in processes if one.code]
    return max(with_code, key=lambda one: one.started_at).code if with_code else ""


def _state(process: Process, now: datetime) -> str:
    silent_for = now - process.seen_at
    if silent_for > SILENT_AFTER:
        return "silent"
    if process.is_draining:
        return "draining"
    return "late" if silent_for > LATE_AFTER else "up"


def _order(held: Held) -> tuple[bool, bool, str]:
    instance = held.instance
    return held.long is None, instance is None, "" if instance is None else str(instance)
