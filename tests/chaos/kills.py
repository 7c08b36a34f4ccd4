"""SIGKILL and SIGSTOP: who is chosen, and what of it has to be gone soon after."""

from __future__ import annotations

import signal
import time
from random import Random

from tests.chaos.family import Family, Process
from tests.chaos.faults import Fault
from tests.chaos.ground import Ground, send
from tests.chaos.watch import OpenBodies, Watch

# Of what is killed at the top nothing may live on; on a loaded machine it takes the kernel a moment to end all.
SURVIVE_SECONDS = 2.0
PATIENCE = 0.7
# For a fault that comes once: where a kill came just before, a new cluster takes its time on a loaded machine.
LONG_PATIENCE = 20.0


class Killer:
    def __init__(self, ground: Ground, watch: Watch, rng: Random) -> None:
        self.ground, self.watch, self.rng = ground, watch, rng
        self.bodies = OpenBodies(ground)
        self.stopped: set[int] = set()

    def wait_for_work(self) -> None:
        """Wait until some body runs: what hits nothing proves nothing."""
        ends_at = time.monotonic() + LONG_PATIENCE
        while not self._is_work() and time.monotonic() < ends_at:
            time.sleep(0.02)

    def _is_work(self) -> bool:
        families = self.watch.families().values()
        running = self.bodies.look()  # last: a body is shorter than a look at all processes may be
        return any(running.get(one.pid) for family in families for one in family.parts["worker"])

    def kill(self, kind: str) -> tuple[Fault, list[Process]] | None:
        """Kill one process of a kind and what hangs on it; None where there is none now. Also tells who must die."""
        chosen = self._choose(kind)
        if chosen is None:
            return None
        if kind != "worker in a body":
            self.wait_for_work()  # again: to look for a victim takes longer than a body may
        machine, victim, family = chosen
        condemned = family.below(victim)
        fault = Fault(kind, time.monotonic(), machine=machine, pids=[one.pid for one in condemned])
        fault.is_real = send(victim.pid, signal.SIGKILL)
        return fault, condemned

    def kill_machine(self, machine: str) -> tuple[Fault, list[Process]]:
        """Kill a supervisor, as the loss of the whole machine would, and all that it started goes with it."""
        process = self.ground.machines[machine].process
        assert process is not None
        family = self.watch.families()[machine]
        condemned = [one for child in family.children[process.pid] for one in family.below(child)]
        fault = Fault("machine", time.monotonic(), machine=machine, pids=[one.pid for one in condemned])
        process.kill()
        process.wait()
        return fault, condemned

    def stop(self) -> Fault | None:
        """Stop a worker amid its bodies, as a machine that swaps or is moved does."""
        chosen = self._choose("worker in a body")
        if chosen is None:
            return None
        machine, victim, _ = chosen
        fault = Fault("zombie", time.monotonic(), machine=machine, pids=[victim.pid])
        fault.is_real = send(victim.pid, signal.SIGSTOP)
        self.stopped.add(victim.pid)
        return fault

    def go_on(self, pid: int) -> bool:
        self.stopped.discard(pid)
        return send(pid, signal.SIGCONT)

    def _choose(self, kind: str) -> tuple[str, Process, Family] | None:
        """Choose a victim; wait a little for one where there is none just now."""
        ends_at = time.monotonic() + PATIENCE
        while (chosen := self._look_for(kind)) is None and time.monotonic() < ends_at:
            time.sleep(0.02)
        return chosen

    def _look_for(self, kind: str) -> tuple[str, Process, Family] | None:
        families = self.watch.families()
        found = [
            (machine, one, family)
            for machine, family in families.items()
            for one in self._victims(kind, family)
            if one.pid not in self.stopped
        ]
        if kind in ("main", "sentinel"):
            # One machine at a time: the other carries on, so that there is work to be hit.
            found = [one for one in found if self._another_works(one[0], families)]
            # A stopped worker would never wake up.
            found = [
                one for one in found if not self.stopped & {w.pid for w in one[2].parts["worker"]}
            ] or found
        return self.rng.choice(found) if found else None

    def _another_works(self, machine: str, families: dict[str, Family]) -> bool:
        return any(family.parts["worker"] for name, family in families.items() if name != machine)

    def _victims(self, kind: str, family: Family) -> list[Process]:
        if kind == "worker in a body":
            running = self.bodies.look()
            return [one for one in family.parts["worker"] if running.get(one.pid)]
        if kind == "idle worker":
            return [one for one in family.parts["worker"] if one.waits_for_a_task]
        return list(family.parts[kind])
