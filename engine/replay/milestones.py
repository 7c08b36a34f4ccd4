"""Milestones: told apart by what they say.

Once all of them had one name and were told apart by their order alone. So new code that inserted one shifted the
others, and where the name is the identity only the first was kept. What was recorded so stays as it is, and is found by
its message.
"""

from __future__ import annotations

import json

from engine.replay.history import History, StepRecord
from engine.values.identity import OLD_MILESTONE, TOP, Counter, StepIdentity, milestone_name
from engine.values.states import StepKind

Old = dict[StepIdentity, StepRecord]


def recorded_before(history: History) -> Old:
    """Return what was recorded under the one name by the identities that its messages have now."""
    counter, found = Counter(), Old()
    for record in sorted(history.steps.values(), key=lambda record: record.count):
        if (record.parent, record.kind, record.name) == (TOP, StepKind.PROGRESS, OLD_MILESTONE):
            said = json.loads(record.output or "null")
            if isinstance(said, dict):  # one that was cancelled has said nothing
                name = milestone_name(str(said.get("message")))
                found[counter.take(StepKind.PROGRESS, name)] = record
    return found
