"""The task that a worker of a cluster runs for as long as it lives: a shift."""

from __future__ import annotations

import logging
import multiprocessing
import os
import socket
from dataclasses import dataclass

from django.conf import settings
from django_q.conf import Conf

from engine.worker.cluster import guardian
from engine.worker.cluster.guardian import Process
from engine.worker.cluster.process_locks import Flag, Locks

logger = logging.getLogger("engine.cluster")

# A stop leaves bodies 10 seconds; a shift that has not returned this long after it is stuck in code that
# nobody can interrupt.
STUCK_SECONDS = 12.0


@dataclass(frozen=True)
class Shared:
    """What the processes of one cluster share. Made in the sentinel, inherited by all it forks."""

    start: Flag
    stop: Flag
    leaving: Locks  # one for each worker that leaves
    most_leaving: int


_shared: Shared | None = None


def prepare(*, start: Flag, stop: Flag, most_leaving: int) -> None:
    """Say, before a worker is forked, what those of a cluster share."""
    global _shared
    _shared = Shared(start, stop, Locks(), most_leaving)


def has_started() -> bool:
    """Tell whether this process belongs to a cluster that runs."""
    return _shared is not None and _shared.start.is_set()


def slots() -> int:
    """Return how many instances one shift drives at a time: REPRISE_SLOTS, or 64."""
    return int(getattr(settings, "REPRISE_SLOTS", 64))


def shift() -> None:
    """Drive instances in this worker until the cluster stops, or another worker takes over. What django-q runs.

    It returns None whatever happens: django-q would keep anything else, and run it again.
    """
    from engine.worker.claims import TakesQuarantined
    from engine.worker.shift import Terms, run

    if _shared is None:
        logger.error("A shift was asked for outside a cluster. Start one with: manage.py qcluster")
        return
    try:
        with guardian.no_longer_than(STUCK_SECONDS, after=_shared.stop):
            run(
                Terms(
                    slots=slots(),
                    name=f"{socket.gethostname()}:{os.getpid()}",
                    should_stop=_shared.stop,
                    takes_quarantined=TakesQuarantined.NEVER,
                    relief=ClusterRelief(_shared),
                    is_permanent=True,
                    keeps_time=bool(Conf.SCHEDULER),
                )
            )
    except Exception:
        # While whatever broke it lasts, it would break the next one as soon.
        logger.exception("A shift broke off; its instances go on in the next one.")
        _shared.stop.wait(1)


class ClusterRelief:
    """How a worker has another one take its place, while it finishes what it holds."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._has_left = False

    @property
    def max_memory_kb(self) -> int | None:
        """Return the memory past which a worker is to be replaced: django-q's `max_rss`."""
        return Conf.MAX_RSS or None

    def call(self, *, must: bool) -> bool:
        """Have this worker replaced, and tell whether it is.

        Not if so many are leaving already that their connections would be too many, unless it `must`.
        """
        process = multiprocessing.current_process()
        if not isinstance(process, Process):
            return False
        if not (self._has_left or self._is_free() or must):
            return False
        if not self._has_left:
            self._has_left = True
            process.leave()
        return True

    def _is_free(self) -> bool:
        # The lock ends with this process.
        return any(self._shared.leaving.take(number) for number in range(self._shared.most_leaving))
