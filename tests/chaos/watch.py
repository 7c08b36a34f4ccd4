"""What goes on right now: which bodies run where, which processes there are, and what they have taken."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field

import psycopg

from tests.chaos.family import Family, Process
from tests.chaos.ground import Ground
from tests.process.ledger import Line

# Instances that have waited for a worker for two seconds: past so many, nothing new is started.
MOST_OVERDUE = 100
STATE = """
    SELECT
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'chaos'),
        (SELECT count(*) FROM engine_instance
         WHERE owner IS NULL AND wake_at < clock_timestamp() - interval '2 seconds')
"""
ENDS = ("end", "failed", "cancelled")
Body = tuple[str, str, int]


def body_of(line: Line) -> Body:
    return line.instance, line.step, line.attempt


class OpenBodies:
    """The bodies that have started and not ended, by process, as the ledger tells."""

    def __init__(self, ground: Ground) -> None:
        self._ledger = ground.ledger
        self._seen = 0
        self.by_pid: dict[int, set[Body]] = defaultdict(set)

    def look(self) -> dict[int, set[Body]]:
        news = self._ledger.since(self._seen)
        for line in news:
            if line.what == "start":
                self.by_pid[line.pid].add(body_of(line))
            elif line.what in ENDS:
                self.by_pid[line.pid].discard(body_of(line))
        self._seen += len(news)
        return self.by_pid


@dataclass
class Sample:
    """One look: the largest process of each part, in KiB; connections; instances that wait for a worker."""

    at: float
    memory: dict[str, int]
    connections: int
    overdue: int = 0


@dataclass
class Watch:
    """Looks at everything now and then; keeps who was ever seen where."""

    ground: Ground
    samples: list[Sample] = field(default_factory=list)
    # The machine and the part of every process that was ever seen.
    seen: dict[int, tuple[str, str]] = field(default_factory=dict)
    # Main processes, and when all parts of their cluster were first seen.
    clusters: dict[Process, float] = field(default_factory=dict)

    def families(self) -> dict[str, Family]:
        found = {name: self.ground.family(name) for name in self.ground.machines}
        for name, family in found.items():
            for part, members in family.parts.items():
                self.seen |= {one.pid: (name, part) for one in members}
            if family.parts["pusher"]:  # the last one that is started
                for main in family.parts["main"]:
                    self.clusters.setdefault(main, time.monotonic())
        return found

    def sample(self) -> None:
        memory: dict[str, int] = defaultdict(int)
        for family in self.families().values():
            for part in ("web", "worker", "quarantine", "main"):
                for one in family.parts[part]:
                    memory[part] = max(memory[part], one.memory)
        connections, overdue = self._ask()
        self.samples.append(Sample(time.monotonic(), dict(memory), connections, overdue))

    def _ask(self) -> tuple[int, int]:
        try:
            with self.ground.connect() as connection:
                ((connections, overdue),) = connection.execute(STATE).fetchall()
        except psycopg.OperationalError:
            return 0, 0
        self.ground.hold_back(overdue > MOST_OVERDUE)
        return int(connections), int(overdue)
