"""What django-q's processes need to survive the sudden death of any of them, and the task that runs a shift
in one.

`harden()` gives django-q other parts where its own keep locks that a killed process takes with it; the stock
command `manage.py qcluster` then runs with them. What cannot be mended from here is told by the system
checks.
"""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any

import django_q.cluster
import django_q.conf
from django.db import DEFAULT_DB_ALIAS, connections
from django_q.signals import post_execute_in_worker, post_spawn

from engine import notify
from engine.worker import forks, guardian
from engine.worker.broker import Broker, slots
from engine.worker.latch import Latch
from engine.worker.places import Places
from engine.worker.queue import Queue, is_supported
from engine.worker.timer import Timer
from engine.worker.watch import REAP

logger = logging.getLogger("engine.cluster")

# A shift with nothing to do ends, so that an idle cluster costs nothing.
IDLE_SECONDS = 15.0
# And it ends now and then in any case, so that django-q's `recycle` and `max_rss` can act.
LONGEST_SECONDS = 900.0
# Without a worker to spare it makes way for ordinary tasks.
LONGEST_SECONDS_ALONE = 5.0

# A stop leaves bodies 10 seconds; a shift that has not returned this long after it is stuck in code that
# nobody can interrupt, and a pusher waits for a server that does not answer. Neither may hold up the whole
# cluster until its supervisor kills it.
STUCK_SECONDS = 12.0

# How long the threads of a shift may take to end after it.
LAST_JOIN_SECONDS = 1.0


@dataclass(frozen=True)
class Board:
    """What the processes of one cluster share. Made in the sentinel, inherited by all it forks."""

    start: Latch
    stop: Latch
    places: Places


_board: Board | None = None


class Sentinel(django_q.cluster.Sentinel):  # type: ignore[misc]
    """django-q's sentinel; puts up the board before it forks anyone."""

    def spawn_cluster(self) -> None:
        global _board
        # Loaded once, here, and not by each worker when there is work.
        importlib.import_module("engine.worker.shift")
        _board = Board(self.start_event, self.stop_event, Places(_places()))
        if isinstance(self.broker, Broker):
            self.broker.open(stop=_board.stop, places=_board.places, room=self.task_queue)
        super().spawn_cluster()

    def stop(self) -> None:
        # Nothing is forked any more, so here a thread does no harm.
        deadline = threading.Timer(STUCK_SECONDS, self.pusher.kill)
        deadline.daemon = True
        deadline.start()
        super().stop()


def harden() -> None:
    """Give django-q our parts. Called in every process that loads the engine, before it forks."""
    forks.guard()
    parts: dict[str, Any] = {
        "Event": Latch,
        "Value": Timer,
        "Sentinel": Sentinel,
        "get_mp_context": guardian.Context,
    }
    if is_supported():
        parts["Queue"] = Queue
    for name, part in parts.items():
        setattr(django_q.cluster, name, part)
    post_spawn.connect(_announce, dispatch_uid="engine.announce")
    post_execute_in_worker.connect(_refuse_unpicklable, dispatch_uid="engine.refuse_unpicklable")


def shift(place: int) -> None:
    """Drive instances in this worker until there is nothing to do or the cluster stops. What django-q runs.

    It returns None whatever happens: django-q would keep anything else, and run it again.
    """
    board = _board
    if board is None:
        logger.error("A shift was asked for outside a cluster. Start one with: manage.py qcluster")
        return
    if board.stop.is_set() or not board.places.take(place):
        return
    try:
        with guardian.no_longer_than(STUCK_SECONDS, after=board.stop):
            _run(board)
    except Exception:
        # While whatever broke it lasts, it would break the next one as soon.
        logger.exception("A shift broke off; its instances go on in the next one.")
        board.stop.wait(1)
    finally:
        board.places.leave(place)


def _run(board: Board) -> None:
    from engine.worker.claims import Isolates
    from engine.worker.shift import run

    threads = set(threading.enumerate())
    has_spare_worker = board.places.count < django_q.conf.Conf.WORKERS
    run(
        slots=slots(),
        name=f"{socket.gethostname()}:{os.getpid()}",
        should_stop=board.stop,
        idle_seconds=IDLE_SECONDS,
        max_seconds=LONGEST_SECONDS if has_spare_worker else LONGEST_SECONDS_ALONE,
        isolates=Isolates.NEVER,
    )
    if _are_left(set(threading.enumerate()) - threads):
        _retire()


def _are_left(threads: set[threading.Thread]) -> bool:
    """Tell whether threads go on after their shift: bodies that outlived their timeout."""
    give_up = time.monotonic() + LAST_JOIN_SECONDS
    for thread in threads:
        thread.join(max(give_up - time.monotonic(), 0))
    return any(thread.is_alive() for thread in threads)


def _retire() -> None:
    """Have this worker replaced by a fresh one after its present task."""
    # What django-q compares the process's memory with between two tasks.
    django_q.conf.Conf.MAX_RSS = 1


def _places() -> int:
    """Return how many shifts a cluster runs: of several workers one stays free for ordinary tasks."""
    return max(1, int(django_q.conf.Conf.WORKERS) - 1)


def _announce(**_: Any) -> None:
    """Have the instances of a worker that died taken over at once: a new worker took its place."""
    if _board is None or not _board.start.is_set():
        return
    try:
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [notify.WAKE, REAP])
        connections.close_all()
    except Exception:
        # An exception of a receiver would kill the worker. The sweep finds what the hint would have told.
        logger.exception("A new worker could not say that it is there.")


def _refuse_unpicklable(task: dict[str, Any], **_: Any) -> None:
    """Turn a result that cannot be stored into a failure; django-q would run the task for ever."""
    result = task.get("result")
    try:
        pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 - whatever a foreign __reduce__ raises
        task["success"] = False
        task["result"] = f"The task returned a {type(result).__name__} that cannot be pickled: {error}"
