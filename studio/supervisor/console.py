"""What the supervisor writes to the terminal: its own words, and its programs' lines with their name before them."""

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
        """Show the made-up password; it is kept nowhere else."""
        self.say(
            f"First account: {account}   password: {password}   "
            f"(shown only now; to change it: python manage.py changepassword {account})"
        )

    def _write(self, line: str) -> None:
        # Whoever reads our output may be gone; the programs go on.
        with suppress(OSError):
            print(line, file=self.out, flush=True)
