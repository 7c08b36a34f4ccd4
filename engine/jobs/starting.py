"""Start many instances in the background, at a pace: a bulk job whose instances do not exist yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from django.db import transaction

from engine.declare.batches import StartItem
from engine.declare.registry import Workflow
from engine.jobs import pace, steering, writing
from engine.jobs.actions import START
from engine.jobs.new_items import text_of
from engine.jobs.reading import BulkStatus, Job, get
from engine.models import BulkItem, BulkJob
from engine.steer import audit, launch
from engine.steer.launch import New
from engine.values import between_steps
from engine.values.argument import Argument
from engine.values.identity import check_instance_id, new_instance_id

P = TypeVar("P")
ROWS = 1_000  # of an INSERT


def start_many(
    workflow: Workflow[P, Any],
    items: Iterable[StartItem[P]],
    *,
    at_once: int | None = None,
    ask_after: int | None = None,
    stop_after: int | None = pace.STOP_AFTER,
    id: str | None = None,
    by: object = None,
    reason: str = "",
) -> Job:
    """Start up to 10,000 instances in the background, 50 in a transaction, as a job that can be paused and aborted.

    An item is a dict with params, id, tags, retention and at, all optional. All are checked now. An id that is in use
    when its turn comes is skipped. With an `id`, repeated calls start one job.

    `at_once`: so many of its instances run at a time. The job pauses itself when `ask_after` are started or have
    failed, and after `stop_after` of those that it started have failed; `resume` goes on.

    Returns the job. Raises BulkJobExistsError for an id in use, LimitError for more than 10,000 items or 64 MiB of
    params, what `start` of a workflow raises for the first item that is not valid, and InstanceExistsError for two
    with one id; then nothing is written.
    """
    between_steps.refuse("start_many")
    speed, cause = pace.checked(at_once, ask_after, stop_after), audit.Cause.of(by, reason)
    with Argument("id"):
        name = new_instance_id() if id is None else check_instance_id(id)
    found = launch.checked_items(workflow, items)
    with transaction.atomic():
        row = steering.insert(name, START, speed.arguments(), "", cause)
        _write(row, workflow, found)
        steering.begin(row, cause)
        writing.note(steering.START, row, cause, after=BulkStatus.RUNNING)
        return get(row.id)


def _write(row: BulkJob, workflow: Workflow[Any, Any], found: Sequence[New]) -> None:
    items = (
        BulkItem(
            job=row,
            position=position,
            workflow=workflow.name,
            instance_id=new.id,
            generation=1,
            new=text_of(new),
        )
        for position, new in enumerate(found, start=1)
    )
    BulkItem.objects.bulk_create(items, batch_size=ROWS)
    writing.write(row, total=len(found))
    row.total = len(found)
