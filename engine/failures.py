"""Groups of failures from code: find them, and say what was decided about them."""

from engine.status.failures import (
    FailedAttempt,
    FailedInstances,
    FailureGroup,
    Groups,
    count_open,
    group,
    groups,
    instances,
    kin,
    sample_trace,
)
from engine.steer.failures import ignore, reopen, resolve

__all__ = [
    "FailedAttempt",
    "FailedInstances",
    "FailureGroup",
    "Groups",
    "count_open",
    "group",
    "groups",
    "ignore",
    "instances",
    "kin",
    "reopen",
    "resolve",
    "sample_trace",
]
