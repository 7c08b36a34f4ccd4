"""What an instance consists of."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What a change is about."""

    GENERATION = "generation"
    ACTION = "action"
    EVENT = "event"
    STEP = "step"
    ATTEMPT = "attempt"
    LOG = "log"
    INSTANCE = "instance"


# Of two rows with the same time, the one of the earlier kind comes first: an action before what it led to, a step
# before its attempts. The instance comes last: its status is what everything before it led to.
RANKS = {kind: rank for rank, kind in enumerate(Kind, start=1)}
KINDS = {rank: kind for kind, rank in RANKS.items()}
