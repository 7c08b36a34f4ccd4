"""One supervisor for one REPRISE_HOME."""

import fcntl
import os
from pathlib import Path
from typing import IO


class AlreadyRunningError(Exception):
    """Another supervisor has this home; the message says which and where."""


def hold(home: Path, address: str) -> IO[str]:
    """Lock `home` for as long as the returned file is open; the kernel lets go when this process ends in any way."""
    home.mkdir(parents=True, exist_ok=True)
    file = (home / "studio.lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "it is just starting"
        file.close()
        raise AlreadyRunningError(
            f"Reprise is already running on {home} ({holder}). "
            "Stop that one, or set REPRISE_HOME and PORT to start another beside it."
        ) from None
    file.seek(0)
    file.truncate()
    file.write(f"process {os.getpid()}, {address}\n")
    file.flush()
    return file
