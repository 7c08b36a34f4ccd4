"""Groups of failures from code: find them, and say what was decided about them."""

from engine.status.failures import (
    FailedAttempt,
    FailedInstances,
    FailureGroup,
    Groups,
    Recovered,
    Share,
    count_open,
    group,
    groups,
    instances,
    kin,
    recovered,
    sample_trace,
    shares,
    told,
    trend,
)
from engine.steer.failure_notes import add_note
from engine.steer.failures import ignore, reopen, resolve

__all__ = [
    "FailedAttempt",
    "FailedInstances",
    "FailureGroup",
    "Groups",
    "Recovered",
    "Share",
    "add_note",
    "count_open",
    "group",
    "groups",
    "ignore",
    "instances",
    "kin",
    "recovered",
    "reopen",
    "resolve",
    "sample_trace",
    "shares",
    "told",
    "trend",
]
