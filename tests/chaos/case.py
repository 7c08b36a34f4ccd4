"""Everything that is known about a run when it is over; checks and figures are made from it alone."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from engine.invariants import Finding
from tests.chaos.evidence import Evidence
from tests.chaos.faults import DOWNTIMES, OUTAGES, Fault
from tests.chaos.monkey import Monkey
from tests.chaos.plan import Plan
from tests.chaos.record import Record, StepRow
from tests.chaos.stories import Story
from tests.chaos.watch import Watch
from tests.process.ledger import Line

# How long after the return of the database connections may still turn out to be broken.
AFTERMATH = 3.0


@dataclass(frozen=True)
class Request:
    """One HTTP request; `status` is 0 where nothing answered."""

    machine: str
    what: str
    began: float
    ended: float
    status: int
    says_when: bool


@dataclass
class End:
    """How it went after the load: seconds until all was done, and until new work was; None for never."""

    load_ended: float
    drained: float | None = None
    tail: float | None = None
    left: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)


@dataclass
class Case:
    plan: Plan
    calibrated: float
    stories: dict[str, Story]
    evidence: Evidence
    record: Record
    findings: list[Finding]
    monkey: Monkey
    end: End
    strays: dict[int, str]
    output: str
    server_log: str
    closed: float = field(default_factory=time.monotonic)

    @property
    def began(self) -> float:
        return self.monkey.began

    @property
    def faults(self) -> list[Fault]:
        return self.monkey.faults

    @property
    def watch(self) -> Watch:
        return self.monkey.watch

    def of(self, *kinds: str) -> list[Fault]:
        return [fault for fault in self.faults if fault.kind in kinds and fault.is_real]

    @cached_property
    def told(self) -> dict[str, Story]:
        """The stories without those that were left out because too much was due."""
        left_out = {line.instance for line in self.evidence.by_what["left out"]}
        return {name: story for name, story in self.stories.items() if name not in left_out}

    @cached_property
    def deleted(self) -> set[str]:
        """Of which nothing is left but what the ledger and the audit trail say."""
        return {line.instance for line in self.evidence.by_what["delete"]}

    @cached_property
    def requests(self) -> list[Request]:
        found = []
        for line in self.evidence.by_what["http"]:
            took, *retry_after = line.key.split()
            began = line.at - float(took)
            found.append(Request(line.instance, line.step, began, line.at, line.attempt, bool(retry_after)))
        return found

    @cached_property
    def outages(self) -> list[tuple[float, float]]:
        return [(fault.at, fault.until + AFTERMATH) for fault in self.of(*OUTAGES)]

    @cached_property
    def downtimes(self) -> list[Fault]:
        return self.of(*DOWNTIMES)

    @cached_property
    def zombies(self) -> list[tuple[set[int], float, float]]:
        """Processes that were stopped or cut off, and how long they may not have known that their leases are gone."""
        lost = {pid for pid, (machine, _) in self.watch.seen.items() if machine == "b"}
        return [
            (lost if fault.kind == "black hole" else set(fault.pids), fault.at, fault.until + self.plan.lease)
            for fault in self.faults
            if fault.kind in ("zombie", "black hole")
        ]

    def was_a_zombie(self, pid: int, began: float, ended: float) -> bool:
        return any(pid in pids and began < until and ended >= at for pids, at, until in self.zombies)

    @cached_property
    def crashing(self) -> set[str]:
        """Instances with a step that ran alone three times when its worker was killed: the engine must give it up."""
        return {
            one.id for one in self.record.instances.values() if _gave_up(one.error) and one.lost_alone >= 3
        }

    @cached_property
    def given_up(self) -> set[str]:
        """Those whose step crashed that often, and those whose child is."""
        rows = self.record.instances
        return self.crashing | {rows[name].parent for name in self.crashing if rows[name].parent}

    @cached_property
    def steps(self) -> dict[tuple[str, str], StepRow]:
        return {(one.instance, one.name): one for one in self.record.steps}


def deaths(faults: list[Fault], lines: list[Line]) -> dict[int, float]:
    """Return the processes that were killed, by this run or by their own poisoned step, and when."""
    killed = {pid: fault.at for fault in faults if fault.kind != "zombie" for pid in fault.pids}
    return killed | {line.pid: line.at for line in lines if line.what == "poison"}


def _gave_up(error: dict[str, Any] | None) -> bool:
    return error is not None and error.get("type") == "WorkerLostError"


def overlaps(began: float, ended: float, windows: list[tuple[float, float]]) -> bool:
    return any(began < end and ended > begin for begin, end in windows)
