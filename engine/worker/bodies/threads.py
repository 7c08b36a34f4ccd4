"""Threads of a worker: few, reused, never waited for at exit, and counted as stuck once their job is given up."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from engine.worker.bodies import sessions

log = logging.getLogger("engine.bodies")

STUCK_SECONDS = 1.0  # a job that was given up may need a moment to end
BUSY_SECONDS = 0.1  # without a free thread, until there count as too few


class Job:
    """A job for a thread. `what` describes it in the log."""

    __slots__ = ("_threads", "has_begun", "is_given_up", "run", "what")

    def __init__(self, threads: Threads, run: Callable[[], object], what: object) -> None:
        self._threads = threads
        self.run = run
        self.what = what
        self.has_begun = False
        self.is_given_up = False

    def give_up(self) -> None:
        """Stop waiting for it: if it has not started it never will, and a thread that runs it counts as stuck."""
        self._threads._give_up(self)


class Threads:
    """Up to `size` daemon threads, started when needed, and as many more to replace stuck ones.

    Not a ThreadPoolExecutor: the interpreter joins its threads at exit, and a thread stuck in a body would keep the
    worker alive forever. Each thread keeps its Django connections, the reason for reusing threads, unless told
    otherwise.
    """

    def __init__(
        self, size: int, *, name: str = "body", keeps_sessions: bool = True, replaces_stuck: bool = True
    ) -> None:
        self._size = size
        self._spare = size if replaces_stuck else 0
        self._name = name
        self._keeps_sessions = keeps_sessions
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._free = 0  # idle threads minus the jobs that wait for one
        self._stuck = 0
        self._all_stuck_at = 0.0
        self._ended_at = 0.0  # the last job
        self._is_stopped = False
        self._running: set[Job] = set()

    @property
    def queued(self) -> int:
        """The number of jobs that wait for a thread."""
        return max(0, -self._free)

    @property
    def running(self) -> int:
        """The number of jobs that have a thread, given up or not."""
        return len(self._running)

    @property
    def stuck(self) -> int:
        """The number of threads whose job was given up and has not ended."""
        return self._stuck

    @property
    def all_stuck(self) -> bool:
        """Return whether no thread will become free, so that waiting jobs never run."""
        with self._lock:
            is_full = self._stuck >= self._size + self._spare
            return is_full and time.monotonic() - self._all_stuck_at >= STUCK_SECONDS

    @property
    def is_saturated(self) -> bool:
        """Return whether a job would have to wait: no thread is free, and none has become free for a while."""
        with self._lock:
            is_full = self._free <= 0 and not self._may_start
            return is_full and time.monotonic() - self._ended_at > BUSY_SECONDS

    @property
    def given_up(self) -> list[object]:
        """Return what still runs although it was given up, by its `what`."""
        with self._lock:
            return [job.what for job in self._running if job.is_given_up]

    @property
    def left(self) -> list[object]:
        """Return what still runs, by its `what`."""
        with self._lock:
            return [job.what for job in self._running]

    def submit(self, run: Callable[[], object], what: object = "") -> Job:
        """Run the job on a thread, after the waiting ones. Its errors are logged.

        Raises RuntimeError after `stop`: it would never run.
        """
        job = Job(self, run, what)
        with self._lock:
            if self._is_stopped:
                raise RuntimeError("The worker has stopped and no longer runs anything on threads.")
            self._free -= 1
            self._jobs.put(job)
            self._start_if_needed()
        return job

    def withdraw(self) -> list[Job]:
        """Return the waiting jobs, which will not run here."""
        taken: list[Job] = []
        with self._lock, suppress(queue.Empty):
            while not self._is_stopped:
                job = self._jobs.get_nowait()
                if job is not None and not job.is_given_up:
                    self._free += 1
                    taken.append(job)
        return taken

    def stop(self) -> None:
        """Let idle threads end at once and the others after their job. Start no further job, and wait for none."""
        with self._lock:
            self._is_stopped = True
            for _ in range(self._started):
                self._jobs.put(None)

    @property
    def _most(self) -> int:
        return self._size + min(self._stuck, self._spare)

    @property
    def _may_start(self) -> bool:
        return self._started < self._most

    def _start_if_needed(self) -> None:
        if self._free < 0 and self._may_start and not self._is_stopped:
            self._started += 1
            self._free += 1
            name = f"{self._name}-{self._started}"
            threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if self._begin(job):
                try:
                    job.run()
                except BaseException:  # the thread and the count of threads survive any job
                    log.exception("a job on a thread failed: %s", job.what)
                if not self._keeps_sessions:
                    sessions.close_all()
                if self._end(job):
                    break
            del job  # an idle thread must not keep references of its last job
        sessions.close_all()

    def _begin(self, job: Job) -> bool:
        with self._lock:
            if job.is_given_up or self._is_stopped:
                return False
            job.has_begun = True
            self._running.add(job)
            return True

    def _end(self, job: Job) -> bool:
        """Record the end of a job. Return whether there are enough threads without this one."""
        with self._lock:
            self._running.discard(job)
            self._stuck -= job.is_given_up
            self._ended_at = time.monotonic()
            if self._started > self._most and not self._is_stopped:
                self._started -= 1
                return True
            self._free += 1
            return False

    def _give_up(self, job: Job) -> None:
        with self._lock:
            is_running = job in self._running
            if job.is_given_up or (job.has_begun and not is_running):
                return
            job.is_given_up = True
            if not is_running:
                self._free += 1
                return
            self._stuck += 1
            if self._stuck == self._size + self._spare:
                self._all_stuck_at = time.monotonic()
            self._start_if_needed()
