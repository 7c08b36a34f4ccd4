"""Locks between processes that end with their holder, however it ends."""

from __future__ import annotations

import fcntl
import tempfile


class Locks:
    """Numbered locks for this process and those forked from it: record locks on the bytes of a nameless file.

    The kernel takes them back from the dead. They belong to processes, so threads of one process share them, and a
    process does not see its own.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="reprise-locks-")  # noqa: SIM115 - ends with this object

    def wait(self, number: int) -> None:
        """Take the lock, when it is free."""
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, number)

    def take(self, number: int) -> bool:
        """Take the lock if it is free; tell whether it was."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def release(self, number: int) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)

    def __del__(self) -> None:
        self._file.close()
