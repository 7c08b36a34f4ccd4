"""The entrance of `step` calls to the cycle."""

from __future__ import annotations

from typing import Any

from engine.replay.calls.unawaited import check_awaited
from engine.replay.exit.endings import Decision
from engine.replay.nesting import nested_calls
from engine.replay.state import CycleState
from engine.values.error_record import cut
from engine.values.retry import StepOptions


class Entrance:
    """Accepts the calls of the running handler, and no others."""

    def __init__(self, cycle: CycleState, decision: Decision) -> None:
        self.cycle = cycle
        self.decision = decision
        self.defaults = cycle.workflow.step_defaults

    def enter(self, operation: str, name: str) -> CycleState | None:
        """Accept a call of the handler; return None if the handler is being closed, when every call is inert."""
        if not self.cycle.loop.is_driven_here:
            raise nested_calls.refusal(operation, name)
        return self.entered()

    def entered(self) -> CycleState | None:
        """Accept a call that is known to be the handler's."""
        if self.cycle.loop.is_closed():
            return None
        if self.decision.decided is not None:
            raise self.decision.decided
        return self.cycle

    def options(self, name: str, options: dict[str, Any]) -> StepOptions:
        """Return the options of a step: those of the call, over the workflow's defaults."""
        if not options:
            return self.defaults
        check_awaited("it was passed to another step", *options.values())
        return self.defaults.override(label(name), **options)


def label(name: object) -> str:
    return f'Step "{cut(str(name), 300)}"'
