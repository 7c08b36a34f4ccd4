"""How an instance leaves its worker when the attempts of a step are used up and a person decides what follows."""

from __future__ import annotations

from engine.replay.calls.call import Call
from engine.replay.records import outcomes
from engine.replay.records.history import StepRecord
from engine.replay.records.writes import Leave
from engine.replay.state import CycleState
from engine.values.errors import StepExhaustedError
from engine.values.identity import TOP
from engine.values.states import InstanceStatus


def leave(cycle: CycleState, *, is_requested: bool) -> Leave:
    """Return how it leaves: paused by the engine, or by the person who has asked for a pause meanwhile.

    It does not leave if a signal has come that this cycle has not seen: the instance may have to end.
    """
    reason = None if is_requested else outcomes.error_json(_reason(cycle))
    return Leave(InstanceStatus.PAUSED, pause_reason=reason, signals=cycle.signals)


def _reason(cycle: CycleState) -> StepExhaustedError:
    steps = [
        (_label(record, cycle.steps.open.get(record.seq)), record.attempts - record.retried_after)
        for _, record in sorted(cycle.exhausted.items())
    ]
    return StepExhaustedError(cycle.claimed.workflow, cycle.claimed.id, steps)


def _label(record: StepRecord, call: Call | None) -> str:
    if call is not None:
        return call.label
    # This cycle has only replayed what is recorded. What encloses a step without a call here is a map.
    return record.name if record.parent == TOP else f"{record.name}[{record.count - 1}]"
