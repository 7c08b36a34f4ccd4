"""The ledger of a run, put in order, and what follows from it: who was hit, and how soon it went on."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tests.chaos.faults import Fault
from tests.chaos.watch import ENDS, Body, body_of
from tests.process.ledger import Line


@dataclass(frozen=True)
class Run:
    """One run of a body. `ended` is when it ended or its process died under it, None if neither is known."""

    body: Body
    pid: int
    started: float
    ended: float | None
    how: str

    def was_open(self, at: float) -> bool:
        return self.started < at and (self.ended is None or self.ended >= at)


class Evidence:
    """`dead` are the processes that were killed, and when."""

    def __init__(self, lines: list[Line], dead: dict[int, float]) -> None:
        self.lines = lines
        self.dead = dead
        self.by_what: dict[str, list[Line]] = defaultdict(list)
        for line in lines:
            self.by_what[line.what].append(line)
        self.starts = sorted(line.at for line in self.by_what["start"])
        self.runs = list(self._runs())
        self.runs_of: dict[tuple[str, str], list[Run]] = defaultdict(list)
        for run in self.runs:
            self.runs_of[run.body[:2]].append(run)

    def _runs(self) -> Iterable[Run]:
        ends: dict[tuple[int, Body], Line] = {}
        for what in ENDS:
            ends |= {(line.pid, body_of(line)): line for line in self.by_what[what]}
        for line in self.by_what["start"]:
            end = ends.get((line.pid, body_of(line)))
            ended = end.at if end else self.dead.get(line.pid)
            yield Run(body_of(line), line.pid, line.at, ended, end.what if end else "")

    def judged(self, faults: list[Fault]) -> Evidence:
        """Count for each fault the bodies that ran when it came, and those that it took; return itself."""
        for fault in faults:
            pids = set(fault.pids)
            running = [run for run in self.runs if run.was_open(fault.at)]
            fault.in_flight = len(running)
            fault.hit = sum(run.pid in pids for run in running)
        return self

    def next_start(self, at: float) -> float | None:
        """Return when the first body after that moment started."""
        place = bisect_right(self.starts, at)
        return self.starts[place] if place < len(self.starts) else None

    def taken_up(self, fault: Fault) -> list[float]:
        """Return how long each body that the fault took waited for its next attempt.

        One whose step was at its next attempt already had been taken before; one that people paused waits for them.
        """
        pids, found = set(fault.pids), []
        for run in self.runs:
            if run.pid in pids and not run.how and run.started < fault.at:
                later = [one.started for one in self.runs_of[run.body[:2]] if one.started > run.started]
                at = min(later, default=0.0)
                if at > fault.at and not self._was_paused(run.body[0], fault.at, at):
                    found.append(at - fault.at)
        return found

    def _was_paused(self, instance: str, begin: float, end: float) -> bool:
        """Tell whether people had it paused at some time between these."""
        resumed = [line.at for line in self.by_what["resume"] if line.instance == instance]
        return any(
            line.at < end and min((at for at in resumed if at > line.at), default=end) >= begin
            for line in self.by_what["pause"]
            if line.instance == instance
        )


def percentile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
