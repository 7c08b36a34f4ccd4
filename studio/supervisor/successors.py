"""New programs, started next to those that run until they have loaded the changed code."""

from __future__ import annotations

from dataclasses import dataclass, field

from studio.supervisor.programs import Child, how_it_ended
from studio.supervisor.reload import Change
from studio.supervisor.trial import LOADS_WITHIN

REFUSAL = "Reprise cannot start. "


@dataclass
class Successors:
    """A web process and a cluster, and the change that they are to load."""

    change: Change
    web: Child
    cluster: Child
    lines: list[tuple[str, str]] = field(default_factory=list)
    """What they wrote, with their names. It is worth printing if they take over."""

    def start(self, now: float) -> None:
        self.web.start(now)
        self.cluster.start(now)

    @property
    def are_ready(self) -> bool:
        return self.web.is_ready and self.cluster.is_ready

    def failure(self, now: float) -> str:
        """Return why they cannot take over, or "" if they still may."""
        self.read()
        for child in (self.web, self.cluster):
            if child.process is not None and not child.is_running:
                return f"The new {child.name} ended ({how_it_ended(child.process.returncode)}). {self._why(child)}"
            if now - child.started_at > LOADS_WITHIN:
                return f"The new {child.name} did not start within {LOADS_WITHIN:g} s."
        return ""

    def read(self) -> None:
        for child in (self.web, self.cluster):
            self.lines += [(child.name, line) for line in child.read_lines()]

    def _why(self, child: Child) -> str:
        lines = [line for name, line in self.lines if name == child.name and line.strip()]
        refused = [line.removeprefix(REFUSAL) for line in lines if line.startswith(REFUSAL)]
        return (refused or lines or [""])[-1]
