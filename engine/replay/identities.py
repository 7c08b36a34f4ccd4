"""The identities of a handler's calls, and the records that they find."""

from __future__ import annotations

from collections.abc import Mapping

from engine.replay.call import Call
from engine.replay.history import History, StepRecord
from engine.replay.milestones import Old, recorded_before
from engine.values.identity import Counter, StepIdentity
from engine.values.states import StepKind


class Identities:
    """Fixes the identity of each call, in the order of the calls: the same on every replay."""

    def __init__(self, history: History, entered: Mapping[StepIdentity, Call], *, is_by_name: bool) -> None:
        self._history = history
        self._entered = entered
        self.is_by_name = is_by_name  # the name alone is the identity
        self._counter = Counter()
        self._old_milestones: Old | None = None  # looked up when first needed

    def record_of(self, kind: StepKind, name: str, *, once: bool = False) -> StepRecord:
        """Fix the identity of a call, and return what is recorded under it, or a new record."""
        once = once or self.is_by_name
        identity = self._counter.take(kind, name, once=once)
        entered = self._entered
        while once and identity in entered and entered[identity].is_given_up:
            identity = identity._replace(count=identity.count + 1)  # the handler gave that one up
        record = self._history.steps.get(identity)
        if record is None and kind == StepKind.PROGRESS:
            record = self._old_milestone(identity)
        if record is None:
            record = StepRecord(0, *identity, is_recorded=False)
            self._history.steps[identity] = record
        return record

    def _old_milestone(self, identity: StepIdentity) -> StepRecord | None:
        """Return what was recorded under another identity than it has now."""
        if self._old_milestones is None:
            self._old_milestones = recorded_before(self._history)
        return self._old_milestones.get(identity)
