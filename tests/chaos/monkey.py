"""The one that does it all: works through the faults of a plan, at their times, and sees to their ends."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from random import Random

from tests.chaos import outages
from tests.chaos.family import Process
from tests.chaos.faults import Fault
from tests.chaos.ground import Ground
from tests.chaos.kills import SURVIVE_SECONDS, Killer
from tests.chaos.plan import KILLS, Due, Plan
from tests.chaos.watch import Watch

SAMPLE_EVERY = 3.0
LOOK_EVERY = 1.0
MACHINE_IS_DOWN = 3.0
COMMON = "worker in a body"  # of the others a short run plans one each, and must show it
LOST = "b"  # the machine that is lost as a whole; the other one has the database


class Monkey:
    """Runs in the main thread: what it starts lives as long as the thread that started it."""

    def __init__(self, ground: Ground, plan: Plan, began: float) -> None:
        self.ground, self.plan, self.began = ground, plan, began
        self.watch = Watch(ground)
        self.killer = Killer(ground, self.watch, Random(f"{plan.seed} victims"))
        self.faults: list[Fault] = []
        self.survivors: list[str] = []
        self.missed: list[str] = []
        self.begun = 0
        self._order = count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._lasting = 0
        self._kinds: dict[str, Callable[[Due], None]] = {
            **dict.fromkeys(KILLS, self._kill),
            "web": self._kill,
            "zombie": self._stop,
            "machine": self._lose_machine,
            "database immediate": self._restart,
            "database fast": self._restart,
            "backend crash": self._crash_backend,
            "backends cut": self._cut,
            "connections exhausted": self._exhaust,
            "idle in transaction": self._hold,
            "black hole": self._cut_off,
        }

    def run(self) -> None:
        """Return when the load is over and every fault is withdrawn."""
        ends_at = self.began + self.plan.load
        planned = self.plan.faults()
        for due in planned:
            self._at(self.began + due.at, partial(self._begin, due))
        self._sample()
        self._look()
        while time.monotonic() < ends_at or self.begun < len(planned) or self._lasting:
            self._next()

    def settle(self, seconds: float) -> None:
        """Go on with what is due, and with no new fault, for so long."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            self._next()

    def _next(self) -> None:
        now = time.monotonic()
        if not self._due or self._due[0][0] > now:
            at = self._due[0][0] if self._due else now + LOOK_EVERY
            time.sleep(max(0.001, min(at - now, LOOK_EVERY)))
            return
        heapq.heappop(self._due)[2]()

    def _at(self, when: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, (when, next(self._order), act))

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        self._at(time.monotonic() + seconds, act)

    # Kinds

    def _begin(self, due: Due) -> None:
        """Do what is due; of the commonest kills, where they come late on a slow machine, every second is enough."""
        self.begun += 1
        late = time.monotonic() - self.began - due.at
        if due.kind == COMMON and late > self.plan.kill_every and self.begun % 2:
            self.missed.append("too late")
            return
        if due.kind != COMMON:  # which looks for work itself
            self.killer.wait_for_work()
        self._kinds[due.kind](due)

    def _kill(self, due: Due) -> None:
        for kind in (due.kind, COMMON):
            done = self.killer.kill(kind)
            if done is not None:
                self._note_death(*done)
                return
            self.missed.append(kind)

    def _note_death(self, fault: Fault, condemned: list[Process]) -> None:
        fault.until = time.monotonic()
        self.faults.append(fault)
        self._after(SURVIVE_SECONDS, lambda: self._check_death(fault, condemned))

    def _check_death(self, fault: Fault, condemned: list[Process]) -> None:
        late = time.monotonic() - fault.at
        for one in condemned:
            if one.is_alive:
                self.survivors.append(f"{one} lives {late:.1f} s after the kill of its {fault.kind}")

    def _stop(self, due: Due) -> None:
        fault = self.killer.stop()
        if fault is None:
            self.missed.append("zombie")
            return
        self.faults.append(fault)

        def go_on() -> None:
            # Another fault may have killed it meanwhile: then it is no zombie.
            fault.is_real = self.killer.go_on(fault.pids[0])
            fault.until = time.monotonic()

        self._end_after(due.seconds, go_on)

    def _lose_machine(self, due: Due) -> None:
        self._note_death(*self.killer.kill_machine(LOST))
        self._end_after(MACHINE_IS_DOWN, self.ground.machines[LOST].launch)

    def _restart(self, due: Due) -> None:
        self.faults.append(outages.restart(self.ground, due.kind))

    def _crash_backend(self, due: Due) -> None:
        fault = outages.crash_backend(self.ground)
        if fault is None:
            self.missed.append("backend crash")
        else:
            self.faults.append(fault)

    def _hold(self, due: Due) -> None:
        self._last(due, outages.Hold(self.ground))

    def _cut_off(self, due: Due) -> None:
        self._last(due, outages.BlackHole(self.ground))

    def _cut(self, due: Due) -> None:
        cuts = outages.Cuts(self.ground)
        self._again(cuts.push, outages.CUT_EVERY, time.monotonic() + due.seconds)
        self._last(due, cuts)

    def _exhaust(self, due: Due) -> None:
        crowd = outages.Crowd(self.ground)
        self._again(crowd.push, LOOK_EVERY, time.monotonic() + due.seconds)
        self._last(due, crowd)

    def _again(self, act: Callable[[], None], every: float, ends_at: float) -> None:
        """Do it now and again until then; on a slow machine less often."""
        act()
        if time.monotonic() + every < ends_at:
            self._after(every, lambda: self._again(act, every, ends_at))

    def _last(
        self, due: Due, lasting: outages.Hold | outages.BlackHole | outages.Cuts | outages.Crowd
    ) -> None:
        self._end_after(due.seconds, lambda: self.faults.append(lasting.end()))

    def _end_after(self, seconds: float, end: Callable[[], None]) -> None:
        """End what lasts; the run waits for it."""
        self._lasting += 1

        def act() -> None:
            self._lasting -= 1
            end()

        self._after(seconds, act)

    # Looking on

    def _sample(self) -> None:
        self.watch.sample()
        self._after(SAMPLE_EVERY, self._sample)

    def _look(self) -> None:
        self.watch.families()
        self._after(LOOK_EVERY, self._look)
