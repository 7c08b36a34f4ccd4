"""Slices of handler code: one that does not return is interrupted, not only noticed."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from types import FrameType

from engine.errors import ControlFlow, WorkflowTimeoutError
from engine.replay import outcomes
from engine.replay.cycle import Cycle

# Seconds until the next interruption of a handler that swallowed one. So short that one soon falls between the
# `except` that swallows and the next `try`, where nothing catches it.
AGAIN = 0.0005
ENGINE = str(Path(__file__).parents[1]) + os.sep


class HandlerInterrupted(ControlFlow):
    """Raised inside handler code by the interval timer."""


class Slices:
    """Drives handlers under an interval timer, whose signal reaches only the main thread."""

    def __init__(self) -> None:
        self._driving: Cycle | None = None
        self._used: dict[int, float] = {}  # seconds of handler code, by instance
        self._can_interrupt = threading.current_thread() is threading.main_thread()
        self._before = signal.signal(signal.SIGALRM, self._on_alarm) if self._can_interrupt else None

    def close(self) -> None:
        if self._can_interrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def forget(self, cycle: Cycle) -> None:
        self._used.pop(cycle.claimed.key, None)

    def allowance(self) -> float:
        cycle = self._driving
        return cycle.workflow.handler_timeout.total_seconds() if cycle is not None else 0.0

    def drive(self, cycle: Cycle) -> None:
        """Run what is ready in the handler, within what is left of its `handler_timeout`."""
        key = cycle.claimed.key
        used = self._used.get(key, 0.0)
        left = cycle.workflow.handler_timeout.total_seconds() - used
        started = time.monotonic()
        self._driving = cycle
        try:
            if self._can_interrupt:
                signal.setitimer(signal.ITIMER_REAL, max(left, 0.001), AGAIN)
            cycle.loop.drain()
        except HandlerInterrupted:
            pass  # it hit the engine's own code; what follows ends the cycle all the same
        finally:
            if self._can_interrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
            self._driving = None
            self._used[key] = used + time.monotonic() - started
        if self._used[key] > cycle.workflow.handler_timeout.total_seconds():
            error = WorkflowTimeoutError("handler_timeout", cycle.workflow.handler_timeout)
            cycle.decide_quietly(outcomes.of_error(error))

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        # Never within the engine's own code, which would be left half done: the next one comes soon enough.
        if (
            self._driving is not None
            and frame is not None
            and not frame.f_code.co_filename.startswith(ENGINE)
        ):
            raise HandlerInterrupted
