"""How the handler ends: by its own decision, or by one that was made over its head."""

from __future__ import annotations

from engine.replay.exit import endings
from engine.replay.exit.endings import Ending
from engine.replay.state import CycleState
from engine.values.errors import ControlFlow
from engine.values.states import InstanceStatus


class Decision:
    """What is decided about the end of the instance."""

    def __init__(self, cycle: CycleState) -> None:
        claimed = cycle.claimed
        self._cycle = cycle
        self.decided: ControlFlow | None = None  # by the handler, whatever it does afterwards
        self.forced: Ending | None = None  # without asking the handler
        # How the instance ends after its rollbacks, once these have begun.
        self.after_rollbacks: Ending | None = None
        if claimed.ends_as:
            self.after_rollbacks = Ending(
                InstanceStatus(claimed.ends_as), error=claimed.error, rolls_back=True
            )
        # How it ends once the handler has received what is recorded.
        self.cut_short: Ending | None = self.after_rollbacks

    def decide(self, flow: ControlFlow) -> ControlFlow:
        """End the instance this way, whatever the handler does with the exception; return what to raise."""
        if self._cycle.loop.is_closed():
            return flow
        self.decided = self.decided or flow
        return self.decided

    def force(self, ending: Ending) -> None:
        """End the instance this way without asking the handler, which does not react."""
        self.forced = self.forced or ending

    @property
    def is_by_handler(self) -> bool:
        """Tell whether the handler itself came to its end, and was not cut short."""
        main = self._cycle.main
        has_returned = main is not None and main.done() and not main.cancelled()
        return self.forced is None and (self.decided is not None or has_returned)

    def found(self) -> Ending | None:
        """Return how the handler has ended; None if it has not."""
        cycle = self._cycle
        if self.forced is not None:
            return self.forced
        if self.decided is not None:
            return endings.of_control_flow(self.decided, cycle.workflow)
        if cycle.main is not None and cycle.main.done():
            return endings.of_handler(cycle.main, cycle.workflow)
        return None

    def rolls_back(self, ending: Ending) -> bool:
        """Tell whether rollbacks run before an instance ends this way."""
        if ending.rolls_back:
            return True
        cycle = self._cycle
        return ending.status == InstanceStatus.ERRORED and any(
            record.is_to_be_undone and (record.is_recorded or record.seq in cycle.writes.steps)
            for record in cycle.history.steps.values()
        )
