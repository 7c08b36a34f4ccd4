"""The sleeps and back-offs of an instance that people may end early, and whether their latest times are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.replay.calls.call import Call
from engine.replay.records.history import History, StepRecord
from engine.values.states import RollbackState, StepKind, StepStatus

KINDS = (StepKind.DO, StepKind.SLEEP)


@dataclass(frozen=True, slots=True)
class WakeUp:
    """Until when a step waits, as its row says; `attempts` tells which of its back-offs that is."""

    seq: int
    attempts: int
    wake_us: int


class WakeUps:
    """Asked for after each signal: a sender writes the new time into the row of the step, and signals.

    Until the answer is here, the instance does not park: it would park until the old time.
    """

    def __init__(self, history: History, open_steps: Mapping[int, Call]) -> None:
        self._history, self._open = history, open_steps
        self._recorded: dict[int, StepRecord] | None = None  # by seq, once needed
        self._is_stale = False
        self.is_asking = False

    def expire(self) -> None:
        """Ask again if any step waits: what is known may be outdated."""
        self._is_stale = bool(self.question)

    @property
    def is_to_ask(self) -> bool:
        """Tell whether there may be news that nobody is asking for yet."""
        return self._is_stale and not self.is_asking

    @property
    def question(self) -> list[int]:
        """The steps to ask about, also those that the handler has not called again yet."""
        if self._recorded is None:
            self._recorded = {one.seq: one for one in self._history.steps.values() if _waits(one)}
        opened = (call.record for call in self._open.values())
        waiting = {one.seq for one in (*self._recorded.values(), *opened) if _waits(one)}
        return sorted(waiting)

    def ask(self) -> None:
        """Note that the question is asked now."""
        self._is_stale, self.is_asking = False, True

    def answer(self, found: Iterable[WakeUp]) -> Iterator[tuple[StepRecord, Call | None]]:
        """Take over the times that have come closer. Yield those steps, with their calls if they have begun here."""
        self.is_asking = False
        for one in found:
            call = self._open.get(one.seq)
            record = (self._recorded or {}).get(one.seq) if call is None else call.record
            if record is None or not _waits(record) or one.attempts != record.attempts:
                continue  # it has gone on since
            if record.wake_us is not None and one.wake_us < record.wake_us:
                record.wake_us = one.wake_us
                yield record, call


def _waits(record: StepRecord) -> bool:
    if record.wake_us is None or record.kind not in KINDS:
        return False
    return record.status == StepStatus.WAITING or record.rollback == RollbackState.RUNNING
