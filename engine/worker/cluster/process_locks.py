"""Flags and locks between processes, which no killed process can leave set or locked forever."""

from __future__ import annotations

import fcntl
import math
import select
import tempfile
from multiprocessing import Pipe


class Flag:
    """Say once that something is so, to every process forked afterwards; takes the place of
    multiprocessing.Event.

    An Event holds locks: a process killed in `is_set()` or `wait()` keeps them, and the next `set()`, say
    that of the signal handler that stops the cluster, waits forever. A flag is a pipe, set as long as it
    holds a byte, which nobody ever reads. An event loop can watch it: it has a `fileno()`.
    """

    def __init__(self) -> None:
        self._reader, self._writer = Pipe(duplex=False)

    def set(self) -> None:
        if not self.is_set():
            self._writer.send_bytes(b"set")

    def is_set(self) -> bool:
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, at most `timeout` seconds; tell whether it is."""
        poll = select.poll()
        poll.register(self._reader.fileno(), select.POLLIN)
        return bool(poll.poll(None if timeout is None else math.ceil(timeout * 1000)))

    def fileno(self) -> int:
        return self._reader.fileno()

    __call__ = is_set


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
