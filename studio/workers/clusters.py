"""The workers as the page shows them: by cluster, with their slots and what runs in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
class Drain:
    """Since when a worker claims nothing, and who said so."""

    at: datetime
    by: str = ""
    reason: str = ""
    is_of_cluster: bool = False


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
    cluster_key: int | None = None
    drain: Drain | None = None
    code_since: datetime | None = (
        None  # when its cluster started: what replaces a worker has the code of its cluster
    )

    @property
    def host(self) -> str:
        return self.name.rpartition(":")[0] or self.name

    @property
    def is_draining(self) -> bool:
        return self.drain is not None


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
    key: int | None = None  # of its row; None for workers without a cluster
    drain: Drain | None = None

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
) -> list[Cluster]:
    """Arrange workers by cluster. `held` has what each runs, by its key."""
    newest = _newest_code(processes)
    grouped: dict[tuple[str, int | None], list[Line]] = {}
    for one in sorted(
        processes, key=lambda one: (one.cluster, one.cluster_key or 0, one.started_at, one.key)
    ):
        runs = tuple(sorted(held.get(one.key, ()), key=_order))
        line = Line(one, _state(one, now), runs, is_older=bool(one.code) and one.code != newest)
        grouped.setdefault((one.cluster, one.cluster_key), []).append(line)
    return [_cluster(name, key, lines) for (name, key), lines in grouped.items()]


def alone_serves(
    leaving: Iterable[int], processes: Sequence[Process], *, now: datetime, visible: frozenset[str]
) -> list[str]:
    """Return the workflows that no worker would serve without these, by their keys."""
    gone = set(leaving)
    taking = [one for one in processes if not one.is_draining and now - one.seen_at <= SILENT_AFTER]
    stays = {name for one in taking if one.key not in gone for name in one.workflows}
    return sorted({name for one in taking if one.key in gone for name in one.workflows} & visible - stays)


def _cluster(name: str, key: int | None, lines: Sequence[Line]) -> Cluster:
    newest_first = sorted(lines, key=lambda line: _code_since(line.process), reverse=True)
    drains = [line.process.drain for line in lines if line.process.drain is not None]
    return Cluster(
        name,
        tuple(lines),
        len({workflow for line in lines for workflow in line.process.workflows}),
        tuple(dict.fromkeys(line.process.code for line in newest_first if line.process.code)),
        key,
        next((drain for drain in drains if drain.is_of_cluster), None),
    )


def _newest_code(processes: Sequence[Process]) -> str:
    """Return the code of the cluster that started last: that is what was released last."""
    with_code = [one for one in processes if one.code]
    return max(with_code, key=_code_since).code if with_code else ""


def _code_since(process: Process) -> datetime:
    return process.code_since or process.started_at


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
