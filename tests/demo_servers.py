"""Look at the servers of the demo rolling-release from outside: by the lock that each holds as long as it lives."""

import fcntl
import os
from pathlib import Path


def is_running(directory: Path) -> bool:
    try:
        lock = (directory / "lock").open("rb")
    except FileNotFoundError:
        return False
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def pid(directory: Path) -> int:
    """Return the process id of the server of a directory."""
    wanted = os.fsencode(directory)
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (process / "cmdline").read_bytes().split(b"\0"):
                return int(process.name)
        except OSError:
            continue  # it has ended meanwhile
    raise LookupError(f"No server of {directory} runs.")
