"""One supervisor for one REPRISE_HOME, and to whom what lies there belongs."""

import fcntl
import os
import re
import stat
from pathlib import Path
from typing import IO

from studio.embedded.address import data_dir
from studio.environment import SECRET_FILE
from studio.machine.account import ACCOUNTS, Account
from studio.machine.private import private

LOCK_FILE = "studio.lock"
DEFAULT_NAME = ".reprise"

# What we and the demo put there. A directory that holds anything else was somebody's before we came.
OUR_NAMES = re.compile(rf"pg|\.?{SECRET_FILE}(\.\d+)?|{LOCK_FILE}|postgresql\.log(\.1)?|backups|refunds|demo")

ROOT = Account(0, 0, "root", "/root")


class AlreadyRunningError(Exception):
    """Another supervisor has this home; the message says which and where."""


def hold(home: Path, address: str) -> IO[str]:
    """Lock `home` for as long as the returned file is open; the kernel lets go when this process ends in any way."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = open(home / LOCK_FILE, "a+", encoding="utf-8", opener=private)  # noqa: SIM115 - takes an opener
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "it is just starting"
        file.close()
        raise AlreadyRunningError(
            f"Reprise is already running on {home} ({holder}). "
            "Stop that one, or set REPRISE_HOME and PORT to start a second one."
        ) from None
    os.fchmod(file.fileno(), 0o600)
    file.seek(0)
    file.truncate()
    file.write(f"process {os.getpid()}, {address}\n")
    file.flush()
    return file


def close_to_others(home: Path) -> None:
    """Let nobody but its owner enter `home`, if it is ours to close."""
    if is_ours(home) and home.stat().st_uid == os.geteuid():
        home.chmod(0o700)


def give(home: Path, account: Account) -> None:
    """As root: let `account` own `home` and what root owns in it, but for the database's own files.

    Of a home that holds other things only the secret key is given: web and workers read it.
    """
    if not is_ours(home):
        _give(home / SECRET_FILE, account)
        return
    _give(home, account, mode=0o700)
    for directory, folders, files in os.walk(home):
        if Path(directory) == home and data_dir(home).name in folders:
            folders.remove(data_dir(home).name)
        for name in (*folders, *files):
            _give(Path(directory, name), account, only_from=ROOT.uid)


def take_back(home: Path, account: Account) -> None:
    """As root: own `home` and its secrets again; `account`, which runs the database, may pass through to its files.

    What belongs to a person stays theirs.
    """
    if account.name not in ACCOUNTS:
        return
    for name in (SECRET_FILE, LOCK_FILE):
        _give(home / name, ROOT)
    if is_ours(home):
        _give(home, Account(ROOT.uid, account.gid, None, "/"), mode=0o710)


def is_ours(home: Path) -> bool:
    """Tell whether `home` holds nothing but what we put there: then its owner and mode are ours to change."""
    if home.stat().st_mode & stat.S_ISVTX:  # one that many share, as /tmp
        return False
    return home.name == DEFAULT_NAME or all(OUR_NAMES.fullmatch(path.name) for path in home.iterdir())


def _give(path: Path, account: Account, *, mode: int | None = None, only_from: int | None = None) -> None:
    """Change the owner of a file or directory; of nothing else, and never of what a link leads to."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # not there, a link, a socket
        return
    try:
        found = os.fstat(descriptor)
        # A file with a second name may be one of root's, which somebody else has linked here.
        is_plain = stat.S_ISDIR(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_nlink == 1)
        if is_plain and only_from in (None, found.st_uid):
            os.fchown(descriptor, account.uid, account.gid)
            if mode is not None:
                os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
