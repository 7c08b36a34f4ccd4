"""Where the embedded server listens. The settings need this before it runs."""

import hashlib
import os
import tempfile
from pathlib import Path

USER = "reprise"
DATABASE = "reprise"
SOCKET_NAME = ".s.PGSQL.5432"

# The kernel keeps a socket's address in 108 bytes (104 on macOS), its closing zero included.
MAX_SOCKET_PATH = 103


def data_dir(home: Path) -> Path:
    return home / "pg"


def socket_dir(home: Path) -> Path:
    """Return the directory of the server's socket: next to the data, or a short path if that one is too long."""
    beside = data_dir(home)
    if len(os.fsencode(beside / SOCKET_NAME)) <= MAX_SOCKET_PATH:
        return beside
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"reprise-{digest}"
