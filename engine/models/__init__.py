"""Ordinary Django models over the tables that the engine writes.

Read them freely. Write only through `engine.steer`: its functions keep the guarantees (locks, fences, audit) that
a plain `save()` would break.
"""

from engine.models.audit import Audit
from engine.models.bulk import BulkItem, BulkJob
from engine.models.code import CodeVersion
from engine.models.count import WorkflowCount, WorkflowCountDelta, WorkflowSpan
from engine.models.event import Event
from engine.models.failure import Failure, FailureCount
from engine.models.generation import Generation
from engine.models.instance import Instance
from engine.models.notice import Notice, NoticeKind
from engine.models.pause import PauseRow
from engine.models.schedule import ScheduleRow
from engine.models.search import IndexedPath, SearchValue
from engine.models.step import Attempt, Log, Step
from engine.models.waiting import EndedRequest, OpenRequest, Waiter
from engine.models.worker import Worker

__all__ = [
    "Attempt",
    "Audit",
    "BulkItem",
    "BulkJob",
    "CodeVersion",
    "EndedRequest",
    "Event",
    "Failure",
    "FailureCount",
    "Generation",
    "IndexedPath",
    "Instance",
    "Log",
    "Notice",
    "NoticeKind",
    "OpenRequest",
    "PauseRow",
    "ScheduleRow",
    "SearchValue",
    "Step",
    "Waiter",
    "Worker",
    "WorkflowCount",
    "WorkflowCountDelta",
    "WorkflowSpan",
]
