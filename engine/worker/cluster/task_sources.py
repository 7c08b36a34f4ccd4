"""Sources of tasks for workers, in addition to the queue that the pusher fills: what `get` returns is run."""

from __future__ import annotations

import multiprocessing
import uuid
from queue import Empty
from typing import Any

from django.utils import timezone

from engine.worker.cluster.guardian import Process
from engine.worker.cluster.process_locks import Flag
from engine.worker.cluster.queue import Queue

STOP = "STOP"  # django-q's marker that ends a worker

IDLE_SECONDS = 1.0

SHIFT = "engine.worker.cluster.shift_task.shift"


class ShiftTasks:
    """The tasks of a worker with a shift: after each shift the next one, until the cluster stops."""

    def __init__(self, stop: Flag) -> None:
        self._stop = stop

    def get(self) -> dict[str, Any] | str:
        process = multiprocessing.current_process()
        if self._stop.is_set() or (isinstance(process, Process) and process.is_leaving):
            return STOP
        key = uuid.uuid4().hex
        # It has no timeout, and nothing of it is stored or acknowledged.
        return {
            "id": key,
            "name": f"shift-{key[:8]}",
            "func": SHIFT,
            "args": (),
            "kwargs": {},
            "started": timezone.now(),
            "timeout": -1,
            "save": False,
            "ack_id": None,
        }


class UntilEmpty:
    """The ordinary tasks of a queue, for a process that ends when there are none left."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def get(self) -> Any:
        try:
            return self._queue.get(timeout=IDLE_SECONDS)
        except Empty:
            return STOP
