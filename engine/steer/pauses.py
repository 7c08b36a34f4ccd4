"""Pause a workflow, and release its instances again.

The pause is one row that claims read. Nothing else of the workflow changes: starts, events and answers are accepted,
and timers go on. What a worker holds leaves it as soon as its running bodies have ended and are recorded. Each function
here is one transaction, or part of the caller's; workers learn of it by a notification, or within five seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.db.models import F

from engine.declare.registry import workflows
from engine.models import Instance, PauseRow
from engine.steer import audit, notify, sql
from engine.values import between_steps
from engine.values.argument import Argument
from engine.values.errors import InvalidValueError, UnknownWorkflowError

PAUSE = "workflow-pause"
RESUME = "workflow-resume"
MOST = 1_000_000  # that may be released at once

__all__ = ["Resumed", "WorkflowPause", "pause", "paused", "resume"]


@dataclass(frozen=True, slots=True)
class WorkflowPause:
    """The pause of a workflow."""

    workflow: str
    """The name of the workflow."""
    paused_at: datetime
    """When it was paused."""
    paused_by: str
    """Who paused it; empty for a program that did not say."""
    reason: str
    """Why, as the person or program said."""
    released: int
    """How many instances were released since."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a resume has done."""

    workflow: str
    """The name of the workflow."""
    released: int
    """How many instances were due and may be claimed now."""
    held: int
    """How many are due and still held."""
    is_paused: bool
    """Whether the workflow is still paused."""


def pause(workflow: str, *, by: object = None, reason: str = "") -> WorkflowPause:
    """Let workers claim nothing more of a workflow until it is resumed.

    Running bodies end and are recorded. Starts, events and answers are accepted, and timers go on: what has expired
    meanwhile has expired at the resume. Other workflows go on, also as children. Does nothing if the workflow is
    already paused, and returns that pause. Raises UnknownWorkflowError for a name that neither the code nor the
    database knows.
    """
    between_steps.refuse("pause")
    cause = audit.Cause.of(by, reason)
    _check_workflow(workflow)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.PAUSE_WORKFLOW, {"workflow": workflow, "by": cause.actor, "reason": cause.reason})
        [(*found, is_new)] = cursor.fetchall()
        if is_new:
            audit.note(PAUSE, workflow, cause, before="active", after="paused")
            _tell(notify.PAUSE)
        return WorkflowPause(*found)


def resume(workflow: str, *, count: int | None = None, by: object = None, reason: str = "") -> Resumed:
    """End the pause of a workflow or, with `count`, release so many of its due instances, the oldest first.

    A released instance goes on to its end, through sleeps and retries; if it is restarted, it is held again. Rows that
    another transaction has locked are left out. Does nothing if the workflow is not paused. Raises
    UnknownWorkflowError for a name that neither the code nor the database knows, and InvalidValueError for a count that
    is not from 1 to 1,000,000.
    """
    between_steps.refuse("resume")
    cause = audit.Cause.of(by, reason)
    _check_count(count)
    _check_workflow(workflow)
    with transaction.atomic():
        row = PauseRow.objects.select_for_update().filter(workflow=workflow).first()
        if row is None:
            return Resumed(workflow, released=0, held=0, is_paused=False)
        if count is None:
            return _end(row, cause)
        return _release(row, count, cause)


def paused(workflows: Iterable[str] | None = None) -> list[WorkflowPause]:
    """Return the pauses, by the names of the workflows; optionally only those of these workflows."""
    rows = PauseRow.objects.order_by("workflow")
    if workflows is not None:
        rows = rows.filter(workflow__in=[name for name in workflows if not audit.is_unstorable(name)])
    return [_pause_of(row) for row in rows]


def _end(row: PauseRow, cause: audit.Cause) -> Resumed:
    released = _held(row)
    row.delete()
    audit.note(RESUME, row.workflow, cause, before="paused", after="active", data={"released": released})
    _tell(notify.DUE)
    return Resumed(row.workflow, released, held=0, is_paused=False)


def _release(row: PauseRow, count: int, cause: audit.Cause) -> Resumed:
    with connection.cursor() as cursor:
        cursor.execute(sql.RELEASE, {"workflow": row.workflow, "pause": row.key, "count": count})
        released = len(cursor.fetchall())
    if released:
        PauseRow.objects.filter(key=row.key).update(released=F("released") + released)
        data = {"count": count, "released": released}
        audit.note(RESUME, row.workflow, cause, before="paused", after="paused", data=data)
        _tell(notify.DUE)
    return Resumed(row.workflow, released, held=_held(row), is_paused=True)


def _held(row: PauseRow) -> int:
    """Count the instances that only the pause keeps from the workers."""
    with connection.cursor() as cursor:
        cursor.execute(sql.COUNT_HELD, {"workflow": row.workflow, "pause": row.key})
        (count,) = cursor.fetchone()
    return int(count)


def _pause_of(row: PauseRow) -> WorkflowPause:
    return WorkflowPause(row.workflow, row.paused_at, row.paused_by, row.reason, row.released)


def _tell(wake: str) -> None:
    """Notify the workers, and pages about everything: the status of any instance of the workflow may read otherwise."""
    with connection.cursor() as cursor:
        channels = [notify.WAKE, notify.CHANGED]
        cursor.execute(sql.NOTIFY, [channels, [wake, notify.EVERYTHING]])


def _check_count(count: object) -> None:
    with Argument("count"):
        if count is None or (type(count) is int and 1 <= count <= MOST):
            return
        rule = f"It is {count!r:.100}, but must be a whole number from 1 to {MOST:,}."
        raise InvalidValueError("$", "out_of_range", rule, what="count", problem="is refused")


def _check_workflow(name: str) -> None:
    """Raise UnknownWorkflowError for a name that is neither in the code nor in the database."""
    if not isinstance(name, str) or audit.is_unstorable(name):
        raise UnknownWorkflowError(str(name), workflows)
    is_known = (
        name in workflows
        or Instance.objects.filter(workflow=name).exists()
        or PauseRow.objects.filter(workflow=name).exists()
    )
    if not is_known:
        raise UnknownWorkflowError(name, workflows)
