"""The open steps of a cycle, by phase."""

from __future__ import annotations

from engine.replay.calls import phases
from engine.replay.calls.call import Call
from engine.replay.calls.phases import StepPhase
from engine.replay.records.history import AttemptRecord


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
