"""Groups of failures that are alike, as pages, programs and the command line show them.

Every function takes the workflows that a person may see; None: all of them.
"""

from engine.status.failures.failing import CurrentGroup, current, last_seen, soonest, started_by
from engine.status.failures.found import FailedAttempt, FailedInstances, FailureGroup, Groups
from engine.status.failures.reading import count_open, group, groups, kin
from engine.status.failures.recent import NextAttempt, ids_of, last_hour, latest_messages, next_attempts
from engine.status.failures.recovered import Recovered, recovered
from engine.status.failures.rows import LastFailure, last_failures, values
from engine.status.failures.shares import MOST as MOST_COMPARED
from engine.status.failures.shares import Share, shares
from engine.status.failures.told import told
from engine.status.failures.trend import trend
from engine.status.failures.within import instances, sample_trace

__all__ = [
    "MOST_COMPARED",
    "CurrentGroup",
    "FailedAttempt",
    "FailedInstances",
    "FailureGroup",
    "Groups",
    "LastFailure",
    "NextAttempt",
    "Recovered",
    "Share",
    "count_open",
    "current",
    "group",
    "groups",
    "ids_of",
    "instances",
    "kin",
    "last_failures",
    "last_hour",
    "last_seen",
    "latest_messages",
    "next_attempts",
    "recovered",
    "sample_trace",
    "shares",
    "soonest",
    "started_by",
    "told",
    "trend",
    "values",
]
