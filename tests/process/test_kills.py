"""SIGKILL of one worker after another while instances run: nothing is lost, and nothing is done twice.

The cases differ in what the instances are and in what people do to them meanwhile. After each, the invariants hold:
the arena looks at them.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import suppress

import pytest
from django.db.models import Q, QuerySet

from engine import InstanceFinishedError, StepNotFoundError
from engine.models import Attempt, Event, Instance, Notice, Step
from tests.counted import miscounted
from tests.process.arena import Arena, kill, wait_until
from tests.process.ledger import Line
from tests.process.program.workflows import (
    block,
    doomed,
    event,
    family,
    narrow,
    program,
    sleep,
    together,
    work,
)

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

SETTLED_SECONDS = 180.0


class Case(ABC):
    """What runs while workers are killed, and what must result from it."""

    kills: int
    workers = 2
    lease = 30.0

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.ledger = arena.ledger
        self.random = random.Random(7)
        self.killed: dict[int, float] = {}

    def start(self) -> list[int]:
        """Start instances and workers; return the workers, in the order in which they are to be killed."""
        return [self.worker() for _ in range(self.workers)]

    def worker(self) -> int:
        return self.arena.worker(f"worker {self.random.random()}", lease=self.lease)

    @abstractmethod
    def before_kill(self, victim: int) -> None:
        """Do what users do meanwhile, and wait until the kill hits something."""

    @abstractmethod
    def is_over(self) -> bool:
        """Return whether everything that was started has ended."""

    @abstractmethod
    def check(self) -> None:
        """Assert what must hold at the end."""


class Restarts(Case):
    """B23, I1, guarantees 14 and 17: whoever is restarted from where, by whom it was held, and when that died"""

    kills = 3
    instances_count = 12
    steps = [
        work("a", 0.05),
        block("b", 0.05),
        event("go"),
        together(work("c", 0.1), sleep("nap", 0.05)),
        work("d", 0.05),
    ]
    targets = (None, "b", "c", "d")

    def start(self) -> list[int]:
        self.instances = program.start_many([{"params": self.steps}] * self.instances_count).created
        self.restarts = Counter[int]()
        self.never_restarted = list(self.instances)
        workers = super().start()
        wait_until(self.is_over, what="the first end of all")
        return workers

    def before_kill(self, victim: int) -> None:
        for number in range(10):
            one = self.never_restarted.pop() if self.never_restarted else self.random.choice(self.instances)
            self.restart(one, self.targets[number % len(self.targets)])
            self.send_what_is_waited_for(self.instances)
            time.sleep(self.random.uniform(0.0, 0.1))
        wait_until(lambda: Attempt.objects.filter(status="running").exists() or self.is_over())

    def restart(self, one: Instance, target: str | None) -> None:
        """Restart it from a step, or from the start where it is not that far."""
        try:
            one.restart(target)
        except StepNotFoundError:
            one.restart()
        self.restarts[one.key] += 1

    def send_what_is_waited_for(self, instances: list[Instance]) -> None:
        sent = set(Event.objects.filter(state="buffered").values_list("instance_id", flat=True))
        for one in instances:
            if one.key not in sent:
                with suppress(InstanceFinishedError):
                    one.send_event("go")

    def is_over(self) -> bool:
        open_ones = list(Instance.objects.exclude(status="complete"))
        self.send_what_is_waited_for(open_ones)
        for one in open_ones:
            if one.status == "errored":  # alone in its worker at three of the deaths, as chance may have it
                self.restart(one, None)
        return not open_ones

    def check(self) -> None:
        assert Attempt.objects.filter(status__in=("lost", "cancelled")).exists(), "nobody was at work"
        assert Step.objects.filter(kept_from__isnull=False).exists(), "nothing was kept"
        for one in self.instances:
            assert one.refresh().generation == 1 + self.restarts[one.key]
            assert one.generations.count() == self.restarts[one.key]
            assert len(one.output) == len(self.steps)


class Families(Case):
    """B25: no orphan, no double. Some wait for their children one by one, some in parallel; some end them early."""

    kills = 20
    parents_count = 30
    children_count = 5
    # How a family is, and how its parent ends.
    kinds = {
        "run": "complete",
        "gather": "complete",
        "parallel": "complete",
        "fail": "errored",
        "stop": "terminated",
    }

    def start(self) -> list[int]:
        child = [work("one", 0.15), work("two", 0.15)]
        self.parents = [
            (kind, family.start({"kind": kind, "count": self.children_count, "child": child}))
            for kind in self.kinds
            for _ in range(self.parents_count // len(self.kinds))
        ]
        self.to_stop = [one for kind, one in self.parents if kind == "stop"]
        return super().start()

    def before_kill(self, victim: int) -> None:
        time.sleep(self.random.uniform(0.1, 0.5))
        self.stop_one()

    def stop_one(self) -> None:
        if self.to_stop and children_of(self.to_stop[0]).exists():
            self.to_stop.pop(0).terminate()

    def is_over(self) -> bool:
        self.stop_one()
        is_open = Instance.objects.open().exists() or Instance.objects.filter(notify_pending=True).exists()
        return not (self.to_stop or is_open)

    def check(self) -> None:
        assert Attempt.objects.filter(status="lost").exists(), "nobody was killed at work"
        ended = [(kind, one.refresh()) for kind, one in self.parents if not self.is_given_up(one)]
        assert len(ended) > self.parents_count * 0.8
        assert [(kind, one.status) for kind, one in ended] == [(kind, self.kinds[kind]) for kind, _ in ended]
        for _, parent in self.parents:
            children = list(children_of(parent))
            calls = Step.objects.filter(instance=parent, kind="child").count()
            assert len(children) == calls == len({one.parent_step for one in children})
            if parent.status == "complete":
                assert len(children) == self.children_count
                assert sorted(parent.output) == sorted(one.output for one in children)

    def is_given_up(self, parent: Instance) -> bool:
        """Return whether a step of the family was alone in its worker at three deaths, as may happen by chance."""
        of_family = Q(instance=parent) | Q(instance__in=children_of(parent))
        return Step.objects.filter(of_family, lost__gte=3, status="errored").exists()


class Notices(Case):
    """Each failure is reported, even if a worker is killed between its commit and the report."""

    kills = 6
    workers = 1
    lease = 2.0

    def start(self) -> list[int]:
        self.instances = doomed.start_many([{"params": "no"}] * 300).created
        return super().start()

    def before_kill(self, victim: int) -> None:
        self.ledger.wait_for(what="heard", pid=victim)
        time.sleep(0.02 * len(self.killed))

    def is_over(self) -> bool:
        return not (Instance.objects.exclude(status="errored").exists() or Notice.objects.exists())

    def check(self) -> None:
        heard = {one.instance for one in self.ledger.lines(what="heard")}
        assert heard == {one.id for one in self.instances}


class Limits(Case):
    """`max_running` holds over several workers, and the slots of a dead one are free again."""

    kills = 2
    limit = 3

    def start(self) -> list[int]:
        assert narrow.max_running == self.limit
        first = self.worker()
        narrow.start_many([{"params": [work("long", 60.0, 0.02), work("after")]}] * self.limit)
        wait_until(lambda: len(self.ledger.lines(what="start", step="long")) == self.limit)
        second = self.worker()
        narrow.start_many([{"params": [work("short", 0.02), work("after", 0.02)]}] * 20)
        return [first, second]

    def before_kill(self, victim: int) -> None:
        if self.killed:
            ended = len(self.ended)
            wait_until(lambda: len(self.ended) > ended + 3, what="the work of those who are left")

    @property
    def ended(self) -> list[Line]:
        return self.ledger.lines(what="end", step="after")

    def is_over(self) -> bool:
        return not Instance.objects.exclude(status="complete").exists()

    def check(self) -> None:
        assert most_at_once(self.ledger.lines(), self.killed) == self.limit


@pytest.mark.parametrize("case", [Restarts, Families, Notices, Limits], ids=lambda case: case.__name__)
def test_nothing_is_lost_or_done_twice_whoever_is_killed(arena: Arena, case: type[Case]) -> None:
    told = case(arena)
    workers = told.start()
    for _ in range(told.kills):
        victim = workers.pop(0)
        told.before_kill(victim)
        told.killed[victim] = time.monotonic()
        kill(victim)
        workers.append(told.worker())
    wait_until(told.is_over, seconds=SETTLED_SECONDS, what="the end of all")

    begun = Counter((line.key, line.attempt) for line in arena.ledger.lines(what="start"))
    assert set(begun.values()) <= {1}
    told.check()
    assert miscounted() == []  # each start and end is counted once


def children_of(parent: Instance) -> QuerySet[Instance]:
    return Instance.objects.filter(parent_key=parent.key)


def most_at_once(lines: list[Line], killed: dict[int, float]) -> int:
    """Count the instances whose bodies ran at the same time; those of a killed process ended with it."""
    begun = [line for line in lines if line.what == "start"]
    ends = {(line.instance, line.step, line.attempt): line.at for line in lines if line.what == "end"}
    moves = [(line.at, 1) for line in begun]
    for line in begun:
        end = ends.get((line.instance, line.step, line.attempt))
        moves.append((killed[line.pid] if end is None else end, -1))
    running = most = 0
    for _, move in sorted(moves):
        running += move
        most = max(most, running)
    return most
