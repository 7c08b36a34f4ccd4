"""The terminal: the supervisor's own lines, and its programs' lines with their names."""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

from studio.environment.folder import program

NAME_WIDTH = 8
OURS = "reprise"


class Console:
    """Prints lines for people."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def say(self, text: str) -> None:
        for line in text.splitlines():
            self.pass_on(OURS, line)

    def pass_on(self, name: str, line: str) -> None:
        self._write(f"{name:<{NAME_WIDTH}}│ {line}")

    def say_once(self, account: str, password: str) -> None:
        """Show the generated password. It is stored nowhere else."""
        self.say(
            f"First account: {account}   password: {password}   "
            f"(shown only now; to change it: {program()} changepassword {account})"
        )

    def _write(self, line: str) -> None:
        # The reader of our output may be gone; keep the programs running.
        with suppress(OSError):
            print(line, file=self.out, flush=True)


class JsonConsole(Console):
    """Prints one JSON object a line. Lines that a program wrote so get its name; others become messages."""

    def __init__(self, out: TextIO, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__(out)
        self._now = now

    def pass_on(self, name: str, line: str) -> None:
        self._write(json.dumps({"program": name, **(_parsed(line) or self._wrapped(line))}))

    def _wrapped(self, line: str) -> dict[str, Any]:
        at = self._now().isoformat(timespec="milliseconds")
        return {"time": at, "level": "INFO", "logger": "reprise.supervisor", "message": line}


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line) if line.startswith("{") else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
