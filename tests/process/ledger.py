"""What bodies really did, whatever the database says, in a file that every process appends to."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VARIABLE = "REPRISE_TEST_LEDGER"


@dataclass(frozen=True)
class Line:
    """`what` is start or end for a body; `at` is on the clock that all processes of this machine share."""

    what: str
    at: float
    pid: int
    instance: str
    step: str
    attempt: int
    key: str

    def fits(self, wanted: dict[str, Any]) -> bool:
        return all(getattr(self, name) == value for name, value in wanted.items())


def path() -> Path:
    """Return where this process's ledger is."""
    return Path(os.environ[VARIABLE])


def write(what: str, *, instance: str, step: str = "", attempt: int = 0, key: str = "") -> None:
    """Append one line; short lines are appended whole, also by processes that are killed."""
    line = Line(what, time.monotonic(), os.getpid(), instance, step, attempt, key)
    descriptor = os.open(path(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, json.dumps(vars(line)).encode() + b"\n")
    finally:
        os.close(descriptor)


class Ledger:
    """Reads the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0
        self._lines: list[Line] = []

    def clear(self) -> None:
        self.path.write_bytes(b"")
        self._read = 0
        self._lines = []

    def lines(self, **wanted: Any) -> list[Line]:
        """Return the lines whose fields have these values, in the order of writing."""
        self._read_on()
        return [line for line in self._lines if line.fits(wanted)]

    def since(self, count: int) -> list[Line]:
        """Return all lines but the first `count`."""
        self._read_on()
        return self._lines[count:]

    def wait_for(self, seconds: float = 60, **wanted: Any) -> Line:
        """Wait for such a line and return it."""
        ends_at = time.monotonic() + seconds
        looked_at = 0
        while True:
            self._read_on()
            for line in self._lines[looked_at:]:
                if line.fits(wanted):
                    return line
            looked_at = len(self._lines)
            assert time.monotonic() < ends_at, f"no line {wanted} within {seconds} s in {self._lines}"
            time.sleep(0.002)

    def _read_on(self) -> None:
        """Read the whole lines that were written since the last time."""
        with self.path.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        self._lines += [Line(**json.loads(line)) for line in whole.splitlines()]
