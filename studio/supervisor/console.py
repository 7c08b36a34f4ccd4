"""What the supervisor writes to the terminal: its own lines, and its programs' lines with their names."""

from contextlib import suppress
from typing import TextIO

NAME_WIDTH = 8


class Console:
    def __init__(self, out: TextIO) -> None:
        self.out = out

    def say(self, text: str) -> None:
        for line in text.splitlines():
            self._write(f"{'reprise':<{NAME_WIDTH}}│ {line}")

    def pass_on(self, name: str, line: str) -> None:
        self._write(f"{name:<{NAME_WIDTH}}│ {line}")

    def say_once(self, account: str, password: str) -> None:
        """Show the generated password. It is stored nowhere else."""
        self.say(
            f"First account: {account}   password: {password}   "
            f"(shown only now; to change it: python manage.py changepassword {account})"
        )

    def _write(self, line: str) -> None:
        # The reader of our output may be gone; keep the programs running.
        with suppress(OSError):
            print(line, file=self.out, flush=True)
