"""Ask the database whether pages can be served: at most once at a time, and once a second, however many ask."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooSlowError
from datetime import timedelta

from engine.status import health, schema
from engine.status.health import Health

APPS = (*schema.APPS, "studio", "auth", "contenttypes", "sessions")
TIMEOUT = timedelta(seconds=2)
VALID_S = 1.0  # for which an answer is given again

TOO_SLOW = Health(False, (f"The database did not answer within {TIMEOUT.seconds} s.",), None)

log = logging.getLogger("reprise.web")


class Question:
    """A question to the database, and its latest answer. Thread-safe."""

    def __init__(self, read: Callable[[], Health]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="readyz")
        self._asked: Future[Health] | None = None
        self._asked_at = float("-inf")

    def ask(self) -> Future[Health]:
        """Return the answer that is still valid, or that is under way, or ask."""
        with self._lock:
            is_under_way = self._asked is not None and not self._asked.done()
            if self._asked is None or not (is_under_way or time.monotonic() < self._asked_at + VALID_S):
                self._asked = self._threads.submit(self._read)
                self._asked_at = time.monotonic()
            return self._asked

    def wait(self) -> Health:
        """Return the answer, in two seconds at most."""
        try:
            return self.ask().result(TIMEOUT.total_seconds())
        except TooSlowError:
            return TOO_SLOW


class Readiness:
    """Reads whether pages can be served, and logs when that changes."""

    def __init__(self) -> None:
        self._was_ready = True

    def __call__(self) -> Health:
        found = health.read(timeout=TIMEOUT, apps=APPS, with_facts=False)
        if found.is_ready and not self._was_ready:
            log.info("Ready again.")
        elif self._was_ready and not found.is_ready:
            log.warning("Not ready: %s", " ".join(found.problems))
        self._was_ready = found.is_ready
        return found


readiness = Question(Readiness())
# Apart, because it takes longer: a database with a long queue is slow to count, and ready all the same.
details = Question(lambda: health.read(timeout=TIMEOUT, apps=APPS))
