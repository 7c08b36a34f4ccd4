"""Flags and locks between processes, which no killed process can leave set or locked forever."""

from __future__ import annotations

import fcntl
import math
import select
import tempfile
from multiprocessing import Pipe


class Flag:
    """A flag that is set once, for all processes forked afterwards. Replaces multiprocessing.Event.

    An Event holds locks: a process killed in `is_set()` or `wait()` keeps them, and the next `set()`, for example by
    the signal handler that stops the cluster, waits forever. A flag is a pipe, set as long as it contains a byte, which
    no one reads. An event loop can watch it: it has a `fileno()`.
    """

    def __init__(self) -> None:
        self._reader, self._writer = Pipe(duplex=False)

    def set(self) -> None:
        if not self.is_set():
            self._writer.send_bytes(b"set")

    def is_set(self) -> bool:
        return self.wait(0)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, at most `timeout` seconds. Return whether it is."""
        poll = select.poll()
        poll.register(self._reader.fileno(), select.POLLIN)
        return bool(poll.poll(None if timeout is None else math.ceil(timeout * 1000)))

    def fileno(self) -> int:
        return self._reader.fileno()

    __call__ = is_set


class Locks:
    """Numbered locks for this process and its forks: record locks on the bytes of an unnamed file.

    The kernel releases them when a process dies. They belong to processes, so threads of one process share them, and a
    process does not see its own.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="reprise-locks-")  # noqa: SIM115 - ends with this object

    def wait(self, number: int) -> None:
        """Wait for the lock and take it."""
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, number)

    def take(self, number: int) -> bool:
        """Take the lock if it is free. Return whether it was."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def release(self, number: int) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)

    def __del__(self) -> None:
        self._file.close()
