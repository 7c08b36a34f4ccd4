"""`workflow pause --all-open` and `workflow resume --all-paused`: for a restored backup, and an outage elsewhere."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator

from engine.command import text
from engine.command.address import Address, check_workflow, origin, said
from engine.command.subcommand import Options, Terminal, UsageError
from engine.models import Audit, Instance, ScheduleRow
from engine.models.instance import InstanceQuerySet
from engine.steer import lifecycle, schedules
from engine.values.errors import InstanceNotFoundError, RepriseError, ScheduleNotFoundError
from engine.values.states import InstanceStatus

BATCH = 500
UNCHANGED = "unchanged"

Act = Callable[..., Instance]


class DeclinedError(RepriseError):
    """The person who was asked to confirm did not say yes. Nothing was changed.

    Answer with `yes`, or add `--yes` in a script.
    """

    def __init__(self) -> None:
        super().__init__("Nothing was changed.")


def arguments_of_pause(parser: ArgumentParser) -> None:
    _arguments(parser, "--all-open", "all instances that have not ended; it needs a reason")
    parser.add_argument(
        "--schedules", action="store_true", help="with --all-open: the schedules of these workflows, too"
    )


def arguments_of_resume(parser: ArgumentParser) -> None:
    _arguments(parser, "--all-paused", "all instances that people have paused, not those that the engine has")
    parser.add_argument(
        "--paused-for",
        type=said,
        metavar="REASON",
        help="with --all-paused: only those paused for this reason",
    )


def _arguments(parser: ArgumentParser, option: str, what: str) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("instance", nargs="?", type=Address.of, metavar="WORKFLOW/ID", help="one instance")
    which.add_argument(option, dest="all", action="store_true", help=what)
    parser.add_argument(
        "--workflow",
        action="append",
        metavar="NAME",
        help=f"with {option}: only of this workflow; repeatable",
    )
    parser.add_argument("--yes", action="store_true", help=f"with {option}: do not ask for confirmation")


def pause_all(terminal: Terminal, options: Options) -> None:
    if not options["reason"].strip():
        raise UsageError("Pausing all open instances requires a reason: add --reason.")
    rows = _rows(options).open().exclude(status__in=[InstanceStatus.PAUSED, InstanceStatus.WAITING_FOR_PAUSE])
    _confirm(options, "Pause", f"{text.count(rows.count(), 'open instance')}{_and_schedules(options)}")
    paused = _pause_schedules(options) if options["schedules"] else 0
    counts = _each(rows, lifecycle.pause, options)
    document = {
        "paused": counts[InstanceStatus.PAUSED],
        "waiting_for_pause": counts[InstanceStatus.WAITING_FOR_PAUSE],
        "paused_schedules": paused,
    }
    terminal.answer(document, lambda: [_of_pause(document)])


def resume_all(terminal: Terminal, options: Options) -> None:
    rows = _rows(options).filter(
        status__in=[InstanceStatus.PAUSED, InstanceStatus.WAITING_FOR_PAUSE], pause_reason=None
    )
    most = f"up to {text.count(rows.count(), 'paused instance')}"
    _confirm(options, "Resume", most)
    counts = _each(rows, lifecycle.resume, options, options["paused_for"])
    resumed = counts.total() - counts[UNCHANGED]
    terminal.answer({"resumed": resumed}, lambda: [f"{text.count(resumed, 'instance')} resumed."])


def require_one(options: Options) -> None:
    """Raise UsageError for an option that goes with all instances, where one is named."""
    for name in ("workflow", "yes", "schedules", "paused_for"):
        if options.get(name):
            option = name.replace("_", "-")
            raise UsageError(f"--{option} goes with all instances, not with one that is named.")


def _rows(options: Options) -> InstanceQuerySet:
    rows = Instance.objects.all()
    for name in options["workflow"] or ():
        check_workflow(name)
    return rows.filter(workflow__in=options["workflow"]) if options["workflow"] else rows


def _confirm(options: Options, verb: str, what: str) -> None:
    if options["yes"]:
        return
    if not sys.stdin.isatty() or options["json"]:
        raise UsageError(f"{verb} {what}? Add --yes.")
    if input(f"{verb} {what}? [y/N] ").strip().lower() not in ("y", "yes"):
        raise DeclinedError


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
            except InstanceNotFoundError:  # deleted meanwhile
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


def _of_pause(found: dict[str, int]) -> str:
    parts = [f"{text.count(found['paused'], 'instance')} paused"]
    if found["waiting_for_pause"]:
        parts.append(
            f"{found['waiting_for_pause']:,} as soon as their running steps have ended or a worker takes them"
        )
    if found["paused_schedules"]:
        parts.append(f"{text.count(found['paused_schedules'], 'schedule')} paused")
    return ", ".join(parts) + "."
