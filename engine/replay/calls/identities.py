"""The identities of a handler's calls, and their records."""

from __future__ import annotations

import json
from collections.abc import Mapping

from engine.replay.calls.call import Call
from engine.replay.records.history import History, StepRecord
from engine.values.identity import OLD_MILESTONE, TOP, Counter, StepIdentity, milestone_name
from engine.values.states import StepKind

OldMilestones = dict[StepIdentity, StepRecord]


class Identities:
    """Fixes the identity of each call, in the order of the calls: the same on every replay."""

    def __init__(self, history: History, entered: Mapping[StepIdentity, Call], *, is_by_name: bool) -> None:
        self._history = history
        self._entered = entered
        self.is_by_name = is_by_name  # a name alone is an identity
        self._counter = Counter()
        self._old_milestones: OldMilestones | None = None  # looked up when first needed

    def record_of(self, kind: StepKind, name: str, *, once: bool = False) -> StepRecord:
        """Fix the identity of a call, and return what is recorded under it, or a new record."""
        once = once or self.is_by_name
        identity = self._counter.take(kind, name, once=once)
        entered = self._entered
        while once and identity in entered and entered[identity].is_given_up:
            identity = identity._replace(count=identity.count + 1)  # the handler cancelled that one
        record = self._history.steps.get(identity)
        if record is None and kind == StepKind.PROGRESS:
            record = self._old_milestone(identity)
        if record is None:
            record = StepRecord(0, *identity, is_recorded=False)
            self._history.steps[identity] = record
        return record

    def _old_milestone(self, identity: StepIdentity) -> StepRecord | None:
        """Return a milestone that was recorded under another identity."""
        if self._old_milestones is None:
            self._old_milestones = _old_milestones(self._history)
        return self._old_milestones.get(identity)


def _old_milestones(history: History) -> OldMilestones:
    """Return milestones that were recorded under one common name, by the identities that their messages have now.

    Older versions told milestones apart by their order alone. New code that inserted one shifted the others, and where
    a name is an identity, only the first was kept. Such records stay as they are and are found by their messages.
    """
    counter, found = Counter(), OldMilestones()
    for record in sorted(history.steps.values(), key=lambda record: record.count):
        if (record.parent, record.kind, record.name) == (TOP, StepKind.PROGRESS, OLD_MILESTONE):
            said = json.loads(record.output or "null")
            if isinstance(said, dict):  # a cancelled one has no message
                name = milestone_name(str(said.get("message")))
                found[counter.take(StepKind.PROGRESS, name)] = record
    return found
