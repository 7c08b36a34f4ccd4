"""The processes of a machine: who is what, who belongs to whom, who is alive."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
RECVMSG = "47"  # in which an idle worker waits for a task, on x86-64
PARTS = ("worker", "monitor", "pusher")


@dataclass(frozen=True)
class Process:
    """A process, told from a later one of the same id by the time of its birth (on the monotonic clock)."""

    pid: int
    parent: int
    name: str
    born: float

    @property
    def is_alive(self) -> bool:
        """A dead one that nobody has waited for yet is dead."""
        now = read(self.pid)
        return now is not None and now.born == self.born

    @property
    def memory(self) -> int:
        """Return what it has in memory, in KiB; 0 if it is gone."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except OSError:
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE") // 1024

    @property
    def command(self) -> str:
        try:
            return (
                Path(f"/proc/{self.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
        except OSError:
            return ""

    @property
    def waits_for_a_task(self) -> bool:
        """Tell whether its only thread sits in the call that takes a task from the queue."""
        try:
            threads = len(list(Path(f"/proc/{self.pid}/task").iterdir()))
            call = Path(f"/proc/{self.pid}/syscall").read_text().split()[0]
        except OSError:
            return False
        return threads == 1 and call == RECVMSG


def read(pid: int) -> Process | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    name, rest = stat.split("(", 1)[1].rsplit(")", 1)
    fields = rest.split()
    if fields[0] in "ZX":
        return None
    return Process(pid, int(fields[1]), name, int(fields[19]) / TICK)


def everybody() -> list[Process]:
    found = (read(int(one.name)) for one in Path("/proc").iterdir() if one.name.isdigit())
    return [one for one in found if one is not None]


class Family:
    """What descends from a supervisor, by the part that each plays; taken at one moment."""

    def __init__(self, supervisor: int) -> None:
        self.children: dict[int, list[Process]] = defaultdict(list)
        for one in everybody():
            self.children[one.parent].append(one)
        self.parts: dict[str, list[Process]] = defaultdict(list)
        for child in self.children[supervisor]:
            self._sort(child)

    def below(self, process: Process) -> list[Process]:
        """Return the process and all that descend from it."""
        return [process, *(one for child in self.children[process.pid] for one in self.below(child))]

    def _sort(self, child: Process) -> None:
        command = child.command
        if "daphne" in command:
            self.parts["web"].append(child)
        elif "postgres" in command:
            self.parts["database"].append(child)
        elif "workers" in command:
            self._sort_cluster(child)

    def _sort_cluster(self, main: Process) -> None:
        self.parts["main"].append(main)
        for sentinel in self.children[main.pid]:
            self.parts["sentinel"].append(sentinel)
            for member in self.children[sentinel.pid]:
                self._sort_member(member)

    def _sort_member(self, member: Process) -> None:
        part = member.name.removeprefix("q-")
        if part in PARTS:
            self.parts[part].append(member)
        if part == "pusher":
            self.parts["quarantine"] += self.children[member.pid]
