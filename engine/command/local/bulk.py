"""Pause all open instances, or resume all paused ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from engine.command import text
from engine.command.bulk import confirm, require_reason
from engine.command.local.finding import check_workflow, origin
from engine.command.subcommand import Options
from engine.models import Audit, Instance, ScheduleRow
from engine.models.instance import InstanceQuerySet
from engine.status.documents import Document
from engine.steer import lifecycle, schedules
from engine.values.errors import InstanceNotFoundError, ScheduleNotFoundError, StepExhaustedError
from engine.values.states import InstanceStatus

BATCH = 500
UNCHANGED = "unchanged"

Act = Callable[..., Instance]


def pause_all(options: Options) -> Document:
    require_reason(options)
    rows = _rows(options).open().exclude(status__in=[InstanceStatus.PAUSED, InstanceStatus.WAITING_FOR_PAUSE])
    confirm(options, "Pause", f"{text.count(rows.count(), 'open instance')}{_and_schedules(options)}")
    paused = _pause_schedules(options) if options["schedules"] else 0
    counts = _each(rows, lifecycle.pause, options)
    return {
        "paused": counts[InstanceStatus.PAUSED],
        "waiting_for_pause": counts[InstanceStatus.WAITING_FOR_PAUSE],
        "paused_schedules": paused,
    }


def resume_all(options: Options) -> Document:
    rows = _rows(options).filter(
        status__in=[InstanceStatus.PAUSED, InstanceStatus.WAITING_FOR_PAUSE], pause_reason=None
    )
    most = f"up to {text.count(rows.count(), 'paused instance')}"
    confirm(options, "Resume", most)
    counts = _each(rows, lifecycle.resume, options, options["paused_for"])
    return {"resumed": counts.total() - counts[UNCHANGED]}


def _rows(options: Options) -> InstanceQuerySet:
    rows = Instance.objects.of_users()
    for name in options["workflow"] or ():
        check_workflow(name)
    return rows.filter(workflow__in=options["workflow"]) if options["workflow"] else rows


def _each(rows: InstanceQuerySet, act: Act, options: Options, paused_for: str | None = None) -> Counter[str]:
    """Do it to each, in the order of their keys, each in a transaction of its own. Count them by status after it."""
    who, counts, after = origin(options), Counter[str](), 0
    while batch := list(
        rows.filter(key__gt=after).order_by("key").only("key", "workflow", "id", "status")[:BATCH]
    ):
        after = batch[-1].key
        for instance in _paused_for(batch, paused_for):
            before = instance.status
            try:
                status = act(instance, **who).status
            except (
                InstanceNotFoundError,
                StepExhaustedError,
            ):  # deleted meanwhile, or to be decided about first
                continue
            counts[UNCHANGED if status == before else status] += 1
    return counts


def _paused_for(batch: list[Instance], reason: str | None) -> Iterator[Instance]:
    """Yield those whose last pause had this reason; all if it is None."""
    if reason is None:
        yield from batch
        return
    pauses = Audit.objects.filter(instance_key__in=[one.key for one in batch], verb="pause", outcome="done")
    last = dict(
        pauses.order_by("key").values_list("instance_key", "reason")
    )  # later ones replace earlier ones
    yield from (one for one in batch if last.get(one.key) == reason)


# Schedules


def _schedules(options: Options) -> list[ScheduleRow]:
    rows = ScheduleRow.objects.filter(is_declared=True, paused_at=None).order_by("key")
    return list(rows.filter(workflow__in=options["workflow"]) if options["workflow"] else rows)


def _and_schedules(options: Options) -> str:
    return f" and {text.count(len(_schedules(options)), 'schedule')}" if options["schedules"] else ""


def _pause_schedules(options: Options) -> int:
    count = 0
    for row in _schedules(options):
        try:
            schedules.pause(row, **origin(options))
        except ScheduleNotFoundError:
            continue
        count += 1
    return count
