"""What bodies really did and when: lines that every process appends, with the clock that all of this machine share."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

VARIABLE = "REPRISE_BENCH_MARKS"
TICK_SECONDS = 0.002

CALLED = "c"  # start() or send_event() is called now
BODY = "s"  # the body of a step of a chain
END = "e"  # the handler is about to return
PARKS = "p"  # the body before an event
RESUMES = "r"  # the body after it
NAPS = "n"  # the body before a sleep
WAKES = "w"  # the body after it


def mark(kind: str, inst: str, step: int = 0) -> None:
    """Append one line; it is there whatever happens to this process next."""
    os.write(_file(), f"{kind} {inst} {step} {time.monotonic_ns()}\n".encode())


def result(i: int, size: int) -> dict[str, Any]:
    """Return what a step returns: a few bytes, or about `size` of them."""
    return {"i": i, "pad": "x" * max(0, size - 20)} if size else {"i": i, "ok": True}


@cache
def _file() -> int:
    return os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


@dataclass(frozen=True, slots=True)
class Mark:
    kind: str
    inst: str
    step: int
    ns: int


class Marks:
    """Reads the lines that are written from now on."""

    def __init__(self) -> None:
        path = Path(os.environ[VARIABLE])
        path.touch()
        self._file = path.open("rb")
        self._file.seek(0, os.SEEK_END)
        self._rest = b""
        self._marks: list[Mark] = []
        self._counts: Counter[str] = Counter()

    def __enter__(self) -> Marks:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def of(self, kind: str) -> list[Mark]:
        self._read_on()
        return [one for one in self._marks if one.kind == kind]

    def first(self, kind: str) -> dict[str, int]:
        """Return when each instance made its first mark of this kind, in nanoseconds."""
        found: dict[str, int] = {}
        for one in self.of(kind):
            found.setdefault(one.inst, one.ns)
        return found

    def wait(self, kind: str, count: int, *, seconds: float) -> None:
        """Wait until there are so many marks of this kind."""
        ends_at = time.monotonic() + seconds
        while self._count(kind) < count:
            if time.monotonic() > ends_at:
                raise TimeoutError(f"{self._counts[kind]} of {count} marks {kind!r} after {seconds:g} s")
            time.sleep(TICK_SECONDS)

    def _count(self, kind: str) -> int:
        self._read_on()
        return self._counts[kind]

    def _read_on(self) -> None:
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            kind, inst, step, ns = line.decode().split(" ")
            self._marks.append(Mark(kind, inst, int(step), int(ns)))
            self._counts[kind] += 1
