"""The steps of a cycle that have started and are not over, found by the phase that they are in."""

from __future__ import annotations

from engine.replay.calls import phases
from engine.replay.calls.call import Call
from engine.replay.calls.phases import StepPhase
from engine.replay.records.history import AttemptRecord


class Steps:
    """By number. What is here follows from the phases, and changes with them only."""

    def __init__(self) -> None:
        self.open: dict[int, Call] = {}  # in the order in which they started
        self.bodies: dict[int, Call] = {}  # with an attempt that is not over
        self.asking: dict[int, Call] = {}  # whose delay function is asked
        self.deferred: dict[int, Call] = {}

    def enter(self, call: Call, phase: StepPhase) -> None:
        """Let a step enter a phase."""
        seq, before, call.phase = call.record.seq, call.phase, phase
        if phase.has_body:
            self.bodies[seq] = call
        elif before.has_body:
            self.bodies.pop(seq, None)
            call.attempt = None
        if before is phases.ASKING_DELAY:
            self.asking.pop(seq, None)
        elif before is phases.DEFERRED and phase is not phases.DEFERRED:  # else it keeps its place
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
        """Return those that are not over, the first begun first."""
        return [call.attempt for call in self.bodies.values() if call.attempt is not None]

    def end_body(self, call: Call) -> None:
        """Its attempt is over; whatever becomes of the step is said next."""
        call.phase = phases.WAITING if call.phase.is_open else phases.CLOSED
        call.attempt = None
        self.bodies.pop(call.record.seq, None)

    def abandon(self, seq: int) -> None:
        """Nobody waits for the step any more."""
        call = self.open.get(seq)
        if call is not None:
            self.enter(call, phases.ABANDONED if call.phase.has_body else phases.CLOSED)
            call.release()

    def release(self) -> None:
        """The cycle ends: the callers of what is open wait for nothing any more."""
        for call in list(self.open.values()):
            call.release()

    def forget_asking(self) -> None:
        """Take no answer of a delay function any more: another cycle asks it again."""
        for call in list(self.asking.values()):
            self.enter(call, phases.WAITING)

    def forget_bodies(self) -> None:
        """Take no outcome of a body any more."""
        for call in list(self.bodies.values()):
            self.end_body(call)

    def close(self) -> None:
        """All is recorded as cancelled that was open."""
        for call in list(self.open.values()):
            self.enter(call, phases.CLOSED)
