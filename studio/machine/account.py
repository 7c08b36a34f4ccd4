"""The ordinary account that runs web, workers and PostgreSQL when root starts them, and its files."""

import errno
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

ACCOUNTS = ("reprise", "postgres", "nobody")

# What a program needs that must not see the secrets of the user who started us.
PLAIN_VARIABLES = ("PATH", "LANG", "TZ", "LD_LIBRARY_PATH")


class AsAccount(TypedDict, total=False):
    """Arguments for subprocess."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Account:
    """A user of this machine. `name` is None if it has only a number."""

    uid: int
    gid: int
    name: str | None
    home: str

    @classmethod
    def of(cls, uid: int, gid: int) -> "Account":
        """Return the account of a user id. `gid` is its group if the machine does not know the id."""
        try:
            found = pwd.getpwuid(uid)
        except KeyError:
            return cls(uid, gid, None, "/")
        return cls(uid, found.pw_gid, found.pw_name, found.pw_dir)

    def __str__(self) -> str:
        return self.name or f"user {self.uid}"

    def arguments(self) -> AsAccount:
        """Return the arguments that make subprocess run a program as this account, with its groups only."""
        groups = os.getgrouplist(self.name, self.gid) if self.name else [self.gid]
        return AsAccount(user=self.uid, group=self.gid, extra_groups=groups)

    def variables(self) -> dict[str, str]:
        """Return the variables that login would set: programs look for files under HOME."""
        name = str(self.name or self.uid)
        return {"HOME": self.home, "USER": name, "LOGNAME": name}


def choose_account(home: Path, data: Path) -> Account | None:
    """Return the account for what root starts, or None if we are not root or there is no such account.

    This is the owner of the database, else the owner of the home, else the first existing one of ACCOUNTS.
    """
    if os.geteuid() != 0:
        return None
    for path in (data, home):
        if path.exists() and path.stat().st_uid != 0:
            return Account.of(path.stat().st_uid, path.stat().st_gid)
    for name in ACCOUNTS:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account.of(found.pw_uid, found.pw_gid)
    return None


def plain_environment() -> dict[str, str]:
    """Return the environment variables that contain no secrets."""
    return {name: os.environ[name] for name in PLAIN_VARIABLES if name in os.environ}


def private(path: str, flags: int) -> int:
    """Open a file, as an `opener` for `open`, that only its owner can read. Follows no link.

    Raises OSError for anything but a regular file, and for one with a second name, which may be a file of root.
    """
    # Truncate it only now that it is known to be the right one.
    descriptor = os.open(path, flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EMLINK, "is not a regular file with a single name", path)
