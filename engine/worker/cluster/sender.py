"""Send packets in the background when there is no room for them yet."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from multiprocessing import util


class Sender:
    """Sends packets in order without making the caller wait.

    django-q's worker passes on its result while the sentinel waits for it: a worker that waited for a dead monitor
    would prevent the sentinel from replacing that monitor. The thread starts with the first packet that finds no room.
    """

    def __init__(self, send: Callable[[bytes], bool], wait_for_room: Callable[[], None]) -> None:
        self._send = send
        self._wait_for_room = wait_for_room
        self._begin()
        # A forked child does not have the thread, and must not send its parent's packets again.
        util.register_after_fork(self, Sender._begin)

    def send(self, packet: bytes) -> None:
        with self._lock:
            if not self._backlog and self._send(packet):
                return
            self._backlog.append(packet)
            if self._thread is None:
                self._start()

    def join(self) -> None:
        """Wait until nothing is left to send."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def abandon(self) -> None:
        """Discard what has not been sent."""
        with self._lock:
            self._backlog.clear()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._backlog: deque[bytes] = deque()
        self._thread: threading.Thread | None = None
        self._joins_at_exit = False

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="reprise-queue-sender", daemon=True)
        self._thread.start()
        if not self._joins_at_exit:
            # A process must not exit with unsent results: multiprocessing calls this before the process ends.
            util.Finalize(None, self.join, exitpriority=-5)
            self._joins_at_exit = True

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._backlog:
                    self._thread = None
                    return
                packet = self._backlog[0]
                if self._send(packet):
                    self._backlog.popleft()
                    continue
            self._wait_for_room()
