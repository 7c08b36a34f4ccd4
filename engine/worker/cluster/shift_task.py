"""The task that a worker of a cluster runs for as long as it lives: a shift."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import secrets
import socket
from dataclasses import dataclass

from django_q.conf import Conf

from engine.configuration import setting
from engine.worker.cluster import conf, guardian
from engine.worker.cluster.guardian import Process
from engine.worker.cluster.process_locks import Flag, Locks
from engine.worker.membership import Membership

logger = logging.getLogger("engine.cluster")

# A stop gives bodies 10 seconds; a shift that has not returned after this long is stuck in code that cannot be
# interrupted.
STUCK_SECONDS = 12.0

# Objects made until the collector looks for cycles. A flush of a busy shift makes and frees thousands at a time; with
# Python's 700 it triggers several collections, and these took a tenth of the worker's CPU time.
COLLECT_AFTER = 10_000


@dataclass(frozen=True)
class Shared:
    """What the processes of one cluster share. Created in the sentinel and inherited by its forks."""

    start: Flag
    stop: Flag
    hurry: Flag
    leaving: Locks  # one per leaving worker
    most_leaving: int
    membership: Membership


_shared: Shared | None = None
_hurry: Flag | None = None  # as the main process of the cluster made it


def hurry_after(flag: Flag) -> None:
    """Let workers that stop finish their bodies until the flag is set. Called before anything is forked."""
    global _hurry
    _hurry = flag


def prepare(*, start: Flag, stop: Flag, most_leaving: int) -> None:
    """Set, before a worker is forked, what the workers of a cluster share."""
    global _shared
    membership = Membership(f"{socket.gethostname()}:{os.getppid()}", -1 - secrets.randbelow(2**31 - 1))
    _shared = Shared(start, stop, _hurry or stop, Locks(), most_leaving, membership)


def membership() -> Membership:
    """Return the cluster of this process. Raises RuntimeError outside of one."""
    if _shared is None:
        raise RuntimeError("This process belongs to no cluster.")
    return _shared.membership


def has_started() -> bool:
    """Return whether this process belongs to a running cluster."""
    return _shared is not None and _shared.start.is_set()


def slots() -> int:
    """Return how many instances one shift drives at a time: the setting SLOTS."""
    return int(setting("SLOTS"))


def shift() -> None:
    """Drive instances in this worker until the cluster stops or another worker takes over. Run by django-q.

    Always return None: django-q would store anything else and run it again.
    """
    from engine.worker.quarantined import TakesQuarantined
    from engine.worker.shift import Terms, run

    if _shared is None:
        logger.error("A shift runs only in a cluster. Start one with: manage.py workers")
        return
    _collect_less_often()
    relief = ClusterRelief(_shared, max_memory_kb=Conf.MAX_RSS or None)
    try:
        with conf.as_in_project(), guardian.no_longer_than(STUCK_SECONDS, after=_shared.hurry):
            run(
                Terms(
                    slots=slots(),
                    name=f"{socket.gethostname()}:{os.getpid()}",
                    should_stop=_shared.stop,
                    should_hurry=_shared.hurry,
                    takes_quarantined=TakesQuarantined.NEVER,
                    relief=relief,
                    is_permanent=True,
                    keeps_time=True,
                    membership=_shared.membership,
                )
            )
    except Exception:
        # As long as the cause lasts, it would also end the next shift.
        logger.exception("A shift failed; its instances continue in the next one.")
        _shared.stop.wait(1)


def _collect_less_often() -> None:
    """Leave what is loaded by now out of collections, and collect after more allocations."""
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])


class ClusterRelief:
    """How a worker is replaced while it finishes what it holds: also above `max_memory_kb`, django-q's `max_rss`."""

    def __init__(self, shared: Shared, *, max_memory_kb: int | None) -> None:
        self.max_memory_kb = max_memory_kb
        self._shared = shared
        self._has_left = False

    def call(self, *, must: bool) -> bool:
        """Request the replacement of this worker. Return whether it is granted.

        Unless it `must`, it is not granted if leaving workers already hold too many connections.
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
        # The lock is released when this process ends.
        return any(self._shared.leaving.take(number) for number in range(self._shared.most_leaving))
