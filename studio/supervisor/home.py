"""Allow one supervisor for each REPRISE_HOME, and set the owners of its files."""

import fcntl
import os
import re
import stat
from pathlib import Path
from typing import IO

from studio.embedded.address import data_dir
from studio.environment import SECRET_FILE
from studio.machine.account import ACCOUNTS, Account, private

LOCK_FILE = "studio.lock"
DEFAULT_NAME = ".reprise"

# Files of ours and of the demo. A directory with anything else belongs to somebody else.
OUR_NAMES = re.compile(rf"pg|\.?{SECRET_FILE}(\.\d+)?|{LOCK_FILE}|postgresql\.log(\.1)?|backups|refunds|demo")

ROOT = Account(0, 0, "root", "/root")


class AlreadyRunningError(Exception):
    """Another `reprise run` uses the same folder; the message says which and where.

    Open the address in the message, or stop that one first. For a second one side by side, set REPRISE_HOME and
    PORT.
    """


def hold(home: Path, address: str) -> IO[str]:
    """Lock `home` while the returned file is open. The kernel unlocks it however this process ends."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = open(home / LOCK_FILE, "a+", encoding="utf-8", opener=private)  # noqa: SIM115 - takes an opener
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "it is just starting"
        file.close()
        raise AlreadyRunningError(
            f"It is already running on {home} ({holder}). "
            "Stop that one, or set REPRISE_HOME and PORT to start a second one."
        ) from None
    os.fchmod(file.fileno(), 0o600)
    file.seek(0)
    file.truncate()
    file.write(f"process {os.getpid()}, {address}\n")
    file.flush()
    return file


def close_to_others(home: Path) -> None:
    """Close `home` to other accounts, if it is ours."""
    if is_ours(home) and home.stat().st_uid == os.geteuid():
        home.chmod(0o700)


def give(home: Path, account: Account) -> None:
    """As root: give `account` `home` and what root owns in it, except the database's files.

    In a home with other files, give it only the secret key: web and workers read it.
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
    """As root: take back `home` and its secrets. `account`, which runs the database, can still reach its files.

    Files of a user stay theirs.
    """
    if account.name not in ACCOUNTS:
        return
    for name in (SECRET_FILE, LOCK_FILE):
        _give(home / name, ROOT)
    if is_ours(home):
        _give(home, Account(ROOT.uid, account.gid, None, "/"), mode=0o710)


def is_ours(home: Path) -> bool:
    """Return whether `home` contains only our files: then we may change its owner and mode."""
    if home.stat().st_mode & stat.S_ISVTX:  # a shared one, such as /tmp
        return False
    return home.name == DEFAULT_NAME or all(OUR_NAMES.fullmatch(path.name) for path in home.iterdir())


def _give(path: Path, account: Account, *, mode: int | None = None, only_from: int | None = None) -> None:
    """Change the owner of a file or directory, never through a link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # not there, a link, a socket
        return
    try:
        found = os.fstat(descriptor)
        # A file with a second name may be a file of root that somebody linked here.
        is_plain = stat.S_ISDIR(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_nlink == 1)
        if is_plain and only_from in (None, found.st_uid):
            os.fchown(descriptor, account.uid, account.gid)
            if mode is not None:
                os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
