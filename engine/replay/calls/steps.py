"""The open steps of a cycle, by phase, and the number of all its steps."""

from __future__ import annotations

from engine.replay.calls import phases
from engine.replay.calls.call import Call
from engine.replay.calls.phases import StepPhase
from engine.replay.records.history import AttemptRecord, History
from engine.values.errors import LimitError


class Steps:
    """Open steps by number. Everything here follows from the phases, and changes only with them."""

    def __init__(self) -> None:
        self.open: dict[int, Call] = {}  # in the order in which they started
        self.bodies: dict[int, Call] = {}  # with an attempt that is not over
        self.asking: dict[int, Call] = {}  # their delay function is asked
        self.deferred: dict[int, Call] = {}

    def enter(self, call: Call, phase: StepPhase) -> None:
        """Change the phase of a step."""
        seq, before, call.phase = call.record.seq, call.phase, phase
        if phase.has_body:
            self.bodies[seq] = call
        elif before.has_body:
            self.bodies.pop(seq, None)
            call.attempt = None
        if before is phases.ASKING_DELAY:
            self.asking.pop(seq, None)
        elif before is phases.DEFERRED and phase is not phases.DEFERRED:  # otherwise it keeps its place
            self.deferred.pop(seq, None)
        if phase.is_open:
            self.open[seq] = call
            if phase is phases.ASKING_DELAY:
                self.asking[seq] = call
            elif phase is phases.DEFERRED:
                self.deferred[seq] = call
        elif before.is_open:
            self.open.pop(seq, None)
            call.closed()

    def attempts(self) -> list[AttemptRecord]:
        """Return the attempts that are not over, in the order in which they began."""
        return [call.attempt for call in self.bodies.values() if call.attempt is not None]

    def end_body(self, call: Call) -> None:
        """End the attempt of a step. The caller then says what becomes of the step."""
        call.phase = phases.WAITING if call.phase.is_open else phases.CLOSED
        call.attempt = None
        self.bodies.pop(call.record.seq, None)

    def abandon(self, seq: int) -> None:
        """Note that nothing waits for a step any more."""
        call = self.open.get(seq)
        if call is not None:
            self.enter(call, phases.ABANDONED if call.phase.has_body else phases.CLOSED)
            call.release()

    def release(self) -> None:
        """Release the callers of open steps, because the cycle ends."""
        for call in list(self.open.values()):
            call.release()

    def forget_asking(self) -> None:
        """Ignore the answers of delay functions: another cycle asks again."""
        for call in list(self.asking.values()):
            self.enter(call, phases.WAITING)

    def forget_bodies(self) -> None:
        """Ignore the outcomes of bodies."""
        for call in list(self.bodies.values()):
            self.end_body(call)

    def close(self) -> None:
        """Close all open steps, which are recorded as cancelled."""
        for call in list(self.open.values()):
            self.enter(call, phases.CLOSED)


class StepCount:
    """Counts the calls of the handler, and those of bodies once their step is delivered: the same on every replay."""

    def __init__(self, history: History, most: int) -> None:
        self._history, self._most = history, most
        self._done = 0
        self._nested = history.mark_nested()  # of steps that are not delivered yet

    def add(self, number: int = 1) -> None:
        """Count calls of the handler. Raises LimitError."""
        self._done += number
        if self._done > self._most:
            raise self._too_many(self._done)

    def add_nested(self) -> None:
        """Count a step that a body calls for the first time. Raises LimitError."""
        number = self._done + self._nested + 1
        if number > self._most:
            raise self._too_many(number)
        self._nested += 1

    def forget_nested(self) -> None:
        """Uncount a step that was never recorded."""
        self._nested -= 1

    def delivered(self, seq: int) -> None:
        """Add the steps that the body of this step called to the handler's own count."""
        if self._nested:
            number = self._history.nested(seq)
            self._nested -= number
            self._done += number

    def _too_many(self, steps: int) -> LimitError:
        return LimitError(
            "number of steps of an instance",
            steps,
            self._most,
            advice="Split the work over child instances, or raise max_steps of the workflow.",
        )
