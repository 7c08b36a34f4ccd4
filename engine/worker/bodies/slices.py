"""Slices of handler code: one that does not return is interrupted."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from engine.replay.cycle import Cycle
from engine.replay.exit import endings
from engine.values.errors import ControlFlow, WorkflowTimeoutError

# Seconds until the next interruption of a handler that swallowed one. Short, so that one soon falls between the
# `except` that swallows it and the next `try`, where nothing catches it.
AGAIN = 0.0005
LAST_SECONDS = 1.0  # for a handler's cleanup
TICK = 0.1  # seconds between two checks of the running slice
ENGINE = str(Path(__file__).parents[2]) + os.sep


class HandlerInterrupted(ControlFlow):
    """Raised inside handler code by the interval timer."""


class Slices:
    """Drives handlers under an interval timer, whose signal reaches only the main thread.

    The timer is set once for many slices: setting it costs as much as a short slice. It checks periodically whether
    the running slice has used up its time, and then fires at short intervals.
    """

    def __init__(self) -> None:
        self._driving: Cycle | None = None
        self._ends_at = 0.0  # of the running slice
        self._is_ticking = False
        self._was_driving = False  # since the last tick
        self._used: dict[Cycle, float] = {}  # seconds of handler code
        self._can_interrupt = threading.current_thread() is threading.main_thread()
        self._before = signal.signal(signal.SIGALRM, self._on_alarm) if self._can_interrupt else None

    def close(self) -> None:
        if self._can_interrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def forget(self, cycle: Cycle) -> None:
        self._used.pop(cycle, None)

    def allowance(self) -> float:
        cycle = self._driving
        return cycle.workflow.handler_timeout.total_seconds() if cycle is not None else 0.0

    def drive(self, cycle: Cycle) -> None:
        """Run what is ready in the handler, within the rest of its `handler_timeout`."""
        limit = cycle.workflow.handler_timeout.total_seconds()
        self._run(cycle, cycle.loop.drain, limit - self._used.get(cycle, 0.0))
        if self._used[cycle] > limit:
            error = WorkflowTimeoutError("handler_timeout", cycle.workflow.handler_timeout)
            cycle.exit.decision.force(endings.of_error(error))

    def shut(self, cycle: Cycle) -> None:
        """Close the handler's coroutines. A `finally:` has the rest of the same time, and at least a moment."""
        limit = cycle.workflow.handler_timeout.total_seconds()
        self._run(cycle, cycle.loop.shut, max(limit - self._used.get(cycle, 0.0), LAST_SECONDS))

    def _run(self, cycle: Cycle, work: Callable[[], None], seconds: float) -> None:
        started = time.monotonic()
        self._ends_at = started + seconds
        self._driving = cycle
        if self._can_interrupt and not (self._is_ticking and seconds > TICK):
            self._tick(min(max(seconds, AGAIN), TICK))
        self._was_driving = True
        try:
            work()
        except HandlerInterrupted:
            pass  # it hit the engine's own code; the cycle ends anyway
        finally:
            self._driving = None
            self._used[cycle] = self._used.get(cycle, 0.0) + time.monotonic() - started

    def _tick(self, seconds: float = TICK) -> None:
        self._is_ticking = True
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        driving, left = self._driving, self._ends_at - time.monotonic()
        if driving is None:
            self._rest()
        elif left > 0:
            self._tick(min(left, TICK))
        # Never inside the engine's own code, which would be left half done: the next tick comes soon.
        elif frame is not None and not frame.f_code.co_filename.startswith(ENGINE):
            raise HandlerInterrupted

    def _rest(self) -> None:
        """Keep ticking between slices while there are any."""
        if self._was_driving:
            self._was_driving = False
            self._tick()
        else:
            self._is_ticking = False
            signal.setitimer(signal.ITIMER_REAL, 0)
