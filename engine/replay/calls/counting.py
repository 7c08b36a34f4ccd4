"""The number of an instance's steps, limited by the `max_steps` of its workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.values.errors import LimitError

if TYPE_CHECKING:
    from engine.replay.records.history import History


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
