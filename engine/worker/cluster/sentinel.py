"""django-q's sentinel with our workers: all but one run a shift, for as long as the cluster runs."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import django_q.cluster

from engine.worker.cluster import conf, shift_task
from engine.worker.cluster.broker import Broker
from engine.worker.cluster.guardian import Process
from engine.worker.cluster.process_locks import Flag
from engine.worker.cluster.task_sources import ShiftTasks, UntilEmpty

# A pusher that waits for a server that does not answer must not delay the stop of the whole cluster until its
# supervisor kills it.
STUCK_SECONDS = 12.0

# The guard wakes up at a death, but not more often than this: a worker may die each time it starts.
EARLY_SECONDS = 0.5


class Sentinel(django_q.cluster.Sentinel):  # type: ignore[misc]
    """Keeps a shift in every worker except one, which runs ordinary tasks.

    Neither kind of work can take workers from the other. A cluster with a single worker runs the shift in it, and
    starts a process for tasks when there are any. A cluster beside the project's own has no tasks: all its workers run
    shifts.
    """

    def spawn_cluster(self) -> None:
        self._shifts = 0
        self._leaving: list[Process] = []
        self._helper: Process | None = None
        stop: Flag = self.stop_event
        if isinstance(self.broker, Broker):
            self._shifts = self.pool_size if conf.is_separate() else max(1, self.pool_size - 1)
            self._shift_tasks = ShiftTasks(stop)
            shift_task.prepare(start=self.start_event, stop=stop, most_leaving=self._shifts)
            self.broker.open(stop=stop, shifts=self._shifts, room=self.task_queue)
        self.stop_event: Any = Wait(stop, self._watched, self._look_around)
        super().spawn_cluster()

    def spawn_worker(self) -> None:
        """Start the missing worker, one with a shift first."""
        running = sum(getattr(one, "runs_shift", False) for one in self.pool)
        if running < self._shifts:
            self._start(self._shift_tasks).runs_shift = True
        else:
            self._start(self.task_queue)

    def reincarnate(self, process: Process) -> None:
        """Replace a process that has died or leaves; one that leaves continues until it has finished."""
        if process.is_leaving and process.exitcode is None:
            self._leaving.append(process)
        if process is self._helper:
            self._end_helper(process)
        else:
            super().reincarnate(process)

    def stop(self) -> None:
        # Nothing is forked after this, so a thread is safe here.
        deadline = threading.Timer(STUCK_SECONDS, self.pusher.kill)
        deadline.daemon = True
        deadline.start()
        super().stop()
        for process in self._leaving:
            process.join()

    def _start(self, tasks: object) -> Any:
        timer = django_q.cluster.Value("f", -1)
        return self.spawn_process(django_q.cluster.worker, tasks, self.result_queue, timer, self.timeout)

    def _watched(self) -> Iterable[int]:
        """Return what wakes the guard: the end of a process, or a task without a worker for it."""
        for process in (*self.pool, self.monitor, self.pusher):
            yield from process.ends()
        if self._needs_help:
            yield self.task_queue.fileno()

    @property
    def _needs_help(self) -> bool:
        return self._helper is None and 0 < self._shifts == self.pool_size

    def _look_around(self) -> None:
        """Remove processes that left and have ended. Start one for tasks if the only worker runs the shift."""
        self._leaving = [one for one in self._leaving if one.exitcode is None]
        if self._needs_help and not self.task_queue.empty():
            self._helper = self._start(UntilEmpty(self.task_queue))

    def _end_helper(self, process: Process) -> None:
        """Drop the process for tasks: it has none left, has died, or is out of time."""
        self.pool.remove(process)
        self._helper = None
        if process.timer.value == 0:
            process.terminate()


class Wait:
    """Replaces the stop event in which django-q's guard sleeps: it also wakes up when there is something to do."""

    def __init__(self, stop: Flag, watched: Callable[[], Iterable[int]], act: Callable[[], None]) -> None:
        self._stop = stop
        self._watched = watched
        self._act = act
        self._woken_at = float("-inf")

    def set(self) -> None:
        self._stop.set()

    def is_set(self) -> bool:
        return self._stop.is_set()

    def wait(self, timeout: float) -> bool:
        """Sleep until something ends, the cluster stops, or the time is over. Return whether it stops."""
        poll = select.poll()
        poll.register(self._stop.fileno(), select.POLLIN)
        now = time.monotonic()
        if now - self._woken_at > EARLY_SECONDS:
            for descriptor in self._watched():
                poll.register(descriptor, select.POLLIN)
        if poll.poll(timeout * 1000):
            self._woken_at = time.monotonic()
        self._act()
        return self._stop.is_set()
