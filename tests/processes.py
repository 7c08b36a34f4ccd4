"""Find the processes of a test: by the mark that it puts into their environment, or by where their database is."""

import time
from collections.abc import Callable
from pathlib import Path

MARK = "REPRISE_TEST_RUN"


def marked(run: str) -> dict[int, str]:
    """Return the command line of every living process that carries the mark of `run`, by process id."""
    wanted = f"{MARK}={run}".encode()
    return _found(lambda process: wanted in (process / "environ").read_bytes().split(b"\0"))


def serving(home: Path) -> dict[int, str]:
    """Return the processes of the PostgreSQL of `home`: each runs in the directory of its files."""
    data = (home / "pg").resolve()
    return _found(lambda process: (process / "cwd").resolve().is_relative_to(data))


def environment(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with."""
    pairs = Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


def wait_until_none(run: str, timeout: float, home: Path | None = None) -> dict[int, str]:
    """Wait until no process of `run`, nor of the database of `home`, is left; return those that still are."""
    deadline = time.monotonic() + timeout
    while (left := marked(run) | (serving(home) if home else {})) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _found(is_wanted: Callable[[Path], bool]) -> dict[int, str]:
    found = {}
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            if is_wanted(directory):
                command = (directory / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(directory.name)] = command.decode(errors="replace").strip()
        except OSError:
            # It has ended meanwhile, or belongs to another user.
            continue
    return found
