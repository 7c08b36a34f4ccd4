"""Groups of failures that are alike, as pages, programs and the command line show them.

Every function takes the workflows that a person may see; None: all of them.
"""

from engine.status.failures.found import FailedAttempt, FailedInstances, FailureGroup, Groups
from engine.status.failures.reading import count_open, group, groups, kin
from engine.status.failures.within import instances, sample_trace

__all__ = [
    "FailedAttempt",
    "FailedInstances",
    "FailureGroup",
    "Groups",
    "count_open",
    "group",
    "groups",
    "instances",
    "kin",
    "sample_trace",
]
