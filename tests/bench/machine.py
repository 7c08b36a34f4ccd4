"""What processes use, as Linux tells it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def disk() -> Path:
    """Return a directory for temporary files that lie on a disk: what is in memory commits too fast."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    for directory in (Path(tempfile.gettempdir()), Path("/var/tmp")):
        under = [(place, kind) for place, kind in mounts if directory.is_relative_to(place)]
        if max(under, key=lambda one: len(one[0]))[1] != "tmpfs":
            return directory
    raise SystemExit("The directories for temporary files are in memory. Set TMPDIR to one on a disk.")


def family(pid: int) -> set[int]:
    """Return the process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and (fields := _stat(int(directory.name))):
            children.setdefault(int(fields[1]), []).append(int(directory.name))
    found: set[int] = set()
    looked_at = [pid]
    while looked_at:
        found.add(one := looked_at.pop())
        looked_at += children.get(one, [])
    return found


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU time that the processes have used, with that of their children who ended."""
    return sum(sum(map(int, fields[11:15])) for pid in pids if (fields := _stat(pid))) / TICKS


def memory_kb(pids: Iterable[int]) -> int:
    """Return their memory, where what several share counts once (PSS)."""
    return sum(_pss(pid) for pid in pids)


class Cpu:
    """Measures shares of one core from its making on."""

    def __init__(self, roots: dict[str, int]) -> None:
        self._roots = roots
        self._began_at = time.monotonic()
        self._before = self._used()

    def shares(self) -> dict[str, float]:
        """Return the share of a core that the family of each root has used."""
        seconds = time.monotonic() - self._began_at
        return {name: (used - self._before[name]) / seconds for name, used in self._used().items()}

    def _used(self) -> dict[str, float]:
        return {name: cpu_seconds(family(pid)) for name, pid in self._roots.items()}


class Foreign:
    """The share of the machine that others than this process and its descendants use.

    `lost` tells what descendants had used whom nobody waited for when they were killed.
    """

    def __init__(self, lost: Callable[[], float]) -> None:
        self._lost = lost
        self._before = self._now()

    def share(self) -> float:
        before, now = self._before, self._now()
        at, busy, own = (new - old for new, old in zip(now, before, strict=True))
        return max(0.0, (busy - own) / (at * (os.cpu_count() or 1)))

    def _now(self) -> tuple[float, float, float]:
        used = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        idle, waits_for_disk = used[3], used[4]
        own = cpu_seconds(family(os.getpid())) + self._lost()
        return time.monotonic(), (sum(used) - idle - waits_for_disk) / TICKS, own


def _stat(pid: int) -> list[str]:
    """Return the fields after the name, from the state on; none of a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
