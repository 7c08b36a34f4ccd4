"""A cycle that replays what is recorded and stops where its handler would go on."""

from __future__ import annotations

from typing import Any

from engine.replay.calls.call import Call
from engine.replay.cycle import Cycle
from engine.replay.exit.endings import Ending
from engine.replay.host import Phase
from engine.replay.records.history import StepRecord
from engine.replay.rollback.rollbacks import Rollbacks
from engine.values.errors import CodeChangedError, NonDeterminismError
from engine.values.identity import TOP


class DryCycle(Cycle):
    """Delivers recorded outcomes and continues open steps, so that what they check is checked. Starts no new step."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.refusal: NonDeterminismError | CodeChangedError | None = None  # it would be paused with this
        self.has_ended = False  # the handler came to its end, or was interrupted
        self.at: StepRecord | None = None  # the step that was delivered or continued last
        self.not_undoable: StepRecord | None = None  # while it is rolled back: a step without a rollback

    def pause_with_reason(self, error: NonDeterminismError | CodeChangedError) -> None:
        self.refusal = error
        self.phase = Phase.LEAVING

    def deliver(self, call: Call) -> None:
        self.at = call.record
        super().deliver(call)

    def start(self, call: Call) -> None:
        self.at = call.record
        super().start(call)

    def _halt(self) -> bool:
        """Go on: what is open besides the steps that wait for a decision is to be checked, too."""
        return False

    def _start_fresh(self) -> bool:
        recorded = [
            call for call in self.deliveries.take_fresh() if call.is_wanted and call.record.is_recorded
        ]
        for call in recorded:
            if self.phase is Phase.DRIVING:
                self.start(call)
        return bool(recorded)

    def _has_ended(self) -> bool:
        self.has_ended = self.exit.decision.found() is not None
        return self.has_ended

    def _cut_short(self, ending: Ending) -> None:
        """Replay an instance that is being rolled back: its handler's calls bring the functions."""
        while self.phase is Phase.DRIVING:
            if self.loop.is_ready:
                self.host.drive(self)
            if self.exit.decision.forced is not None or not self._deliver_recorded():
                break
        if self.phase is Phase.DRIVING:
            self.not_undoable = Rollbacks(self, self.exit, ending).first_without_function()

    def _rest(self) -> None:
        """Go no further."""

    # What it found

    def new_calls(self, *, before_recorded: bool = False) -> list[StepRecord]:
        """Return the steps that are called and not recorded, or only those called before a recorded one."""
        calls = list(self.deliveries.entered.values())
        if before_recorded:
            last = max((at for at, call in enumerate(calls) if call.record.is_recorded), default=0)
            calls = calls[:last]
        return [call.record for call in calls if call.is_wanted and not call.record.is_recorded]

    def unreached_steps(self) -> list[StepRecord]:
        """Return the recorded top-level steps that the handler has not called, in the order of their start."""
        entered = self.deliveries.entered
        missing = (
            record
            for identity, record in self.history.steps.items()
            if record.is_recorded and record.parent == TOP and identity not in entered
        )
        return sorted(missing, key=lambda record: record.seq)
