"""Find the processes of a test by the mark that it puts into their environment."""

import time
from pathlib import Path

MARK = "REPRISE_TEST_RUN"


def marked(run: str) -> dict[int, str]:
    """Return the command line of every living process that carries the mark of `run`, by process id."""
    wanted = f"{MARK}={run}".encode()
    found = {}
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            if wanted in (directory / "environ").read_bytes().split(b"\0"):
                command = (directory / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(directory.name)] = command.decode(errors="replace").strip()
        except OSError:
            # It ended while we looked, or belongs to somebody else.
            continue
    return found


def wait_until_none(run: str, timeout: float) -> dict[int, str]:
    """Wait until no process of `run` is left; return those that are still there after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while (left := marked(run)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left
