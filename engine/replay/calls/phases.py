"""The phases of a step in a cycle. The record of a step is what the database knows; its phase is its state here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class StepPhase:
    """A step that `is_open` has started and has no outcome; one that `has_body` has an attempt that is not over."""

    name: str
    is_open: bool = False
    has_body: bool = False


# Not an Enum: a cycle reads them many times a step, and looking up a member of an Enum is slow.
CALLED = StepPhase("called")  # not started; or it has a recorded outcome, which waits for its turn
WAITING = StepPhase("waiting", is_open=True)  # for a time, an event, another instance, or its inner steps
DEFERRED = StepPhase("deferred", is_open=True)  # its next attempt must not begin yet
STARTING = StepPhase("starting", is_open=True, has_body=True)  # its attempt is being recorded
STARTED = StepPhase("started", is_open=True, has_body=True)  # its attempt is recorded, its body begins next
RUNNING = StepPhase("running", is_open=True, has_body=True)  # its body runs
ASKING_DELAY = StepPhase("asking delay", is_open=True)  # its delay function has not answered
BACKING_OFF = StepPhase("backing off", is_open=True)  # until its next attempt
ABANDONED = StepPhase("abandoned", has_body=True)  # nobody waits for it, but its body has not ended
SETTLED = StepPhase("settled")  # its outcome waits for its turn
DELIVERED = StepPhase("delivered")  # its caller has the outcome
CLOSED = StepPhase("closed")  # over without an outcome: cancelled, or interrupted
