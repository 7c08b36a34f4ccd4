"""`workflow bulk preview`, `start`, `list`, `show`, `pause`, `resume`, `abort` and `retry-failed`."""

from __future__ import annotations

import re
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from typing import Any

from engine.command import text
from engine.command.address import Address, natural, take_limit, take_origin
from engine.command.bulk import confirm
from engine.command.subcommand import Options, Subcommand, Terminal, UsageError
from engine.status.json_text import Document

ACTIONS = ("retry", "pause", "resume", "terminate", "restart")
NEED_REASON = ("terminate", "restart")  # as for one instance
OUTCOMES = ("open", "done", "skipped", "failed")
STOP_AFTER, NEVER = 5, "never"
POLL_S = 1.0

_PACE = {
    "at_once": "{:,} at a time",
    "ask_after": "asks after {:,}",
    "stop_after": "stops after {:,} new failures",
}
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


def arguments_of_action(options: Options) -> dict[str, Any]:
    """Return how the action is done, as the engine and the client take it. Raises UsageError."""
    if (options["query"] is None) == (not options["instance"]):
        raise UsageError("Pass either --query SEARCH or instances as WORKFLOW/ID.")
    return {"rollback": options["rollback"] or None, "keys": options["keys"]}


def pace_of(options: Options) -> dict[str, Any]:
    """Return how fast it goes, as the engine and the client take it."""
    return {name: options[name] for name in ("at_once", "ask_after", "stop_after", "resume_workflows")}


def names(options: Options) -> list[tuple[str, str]]:
    """Return the instances that are named."""
    return [(one.workflow, one.id) for one in options["instance"]]


def confirm_start(options: Options, preview: Callable[[], Document]) -> None:
    """Show what would be done, and ask. Raises DeclinedError, or UsageError where nobody can be asked."""
    if options["action"] in NEED_REASON and not options["reason"].strip():
        raise UsageError(f"The action {options['action']} requires a reason: add --reason.")
    if options["yes"]:
        return
    found = preview()
    what = f"{found['eligible']:,} of {text.count(found['total'], 'instance')}"
    confirm(options, options["action"].capitalize(), what, shown=_shares(found))


def awaited(options: Options, job: Document, read: Callable[[str], Document]) -> Document:
    """Return the job; with --wait, once it has ended or is paused. A terminal shows how far it is."""
    while options["wait"] and job["status"] == "running" and job["left"]:
        time.sleep(POLL_S)
        job = read(job["id"])
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{_progress(job)}")
            sys.stderr.flush()
    if options["wait"] and sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return job


def _take_action(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help=f"one of {', '.join(ACTIONS)}")
    parser.add_argument(
        "instance", nargs="*", type=Address.of, metavar="WORKFLOW/ID", help="instances, instead of --query"
    )
    parser.add_argument(
        "--query", metavar="SEARCH", help='all that it finds now: "status:errored workflow:orders"'
    )
    parser.add_argument("--rollback", action="store_true", help="with terminate: roll back their steps first")
    parser.add_argument(
        "--keys", choices=["new", "same"], help="with restart: idempotency keys of the steps (new)"
    )


def _arguments_of_start(parser: ArgumentParser) -> None:
    _take_action(parser)
    parser.add_argument(
        "--at-once", type=natural, metavar="N", help="so many of its instances run at a time (all that can)"
    )
    parser.add_argument(
        "--ask-after", type=natural, metavar="N", help="pause it when so many are done or have failed"
    )
    parser.add_argument(
        "--stop-after",
        type=_limit_of_failures,
        default=STOP_AFTER,
        metavar="N",
        help=f"pause it after so many new failures, or {NEVER} ({STOP_AFTER})",
    )
    parser.add_argument(
        "--resume-workflows", action="store_true", help="end the pauses of their workflows first"
    )
    parser.add_argument("--id", help="its id, so that a repeated command starts one job (default: generated)")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--wait", action="store_true", help="wait until it has ended or is paused")
    take_origin(parser)


def _limit_of_failures(given: str) -> int | None:
    return None if given == NEVER else natural(given)


def _arguments_of_list(parser: ArgumentParser) -> None:
    take_limit(parser, "jobs")
    parser.add_argument(
        "--before", type=_id, metavar="ID", help='only those before it: the "older" id of the previous page'
    )


def _arguments_of_show(parser: ArgumentParser) -> None:
    _take_id(parser)
    parser.add_argument(
        "--outcome", choices=[*OUTCOMES, "all"], default="failed", help="which instances (failed)"
    )
    take_limit(parser, "instances")
    parser.add_argument(
        "--after", type=_position, default=0, metavar="N", help='only those after this position: "next"'
    )


def _arguments_of_steering(parser: ArgumentParser) -> None:
    _take_id(parser)
    take_origin(parser)


def _take_id(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=_id, metavar="ID", help="the id of the job")


def _id(given: str) -> str:
    if not _ID.fullmatch(given):
        raise ArgumentTypeError(f'"{given}" is not the id of a job. Pass one that `bulk list` prints.')
    return given


def _position(given: str) -> int:
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise ArgumentTypeError(f'"{given}" is not a position. Pass the "next" of the previous page.')
    return int(given)


def _lines_of_preview(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    preview = found["preview"]
    what = text.count(preview["total"], "instance")
    yield f"{preview['action'].capitalize()}: {preview['eligible']:,} of {what}."
    for line in _shares(preview):
        yield text.cut(line, terminal.width)


def _shares(preview: Document) -> Iterator[str]:
    """Yield a line for those to which the action applies, and for each reason why it does not apply to others."""
    parts = [(preview["eligible"], "The action applies.", preview["examples"])]
    others = [preview["rolled_back"]] if preview["rolled_back"] else []
    parts += [(one["count"], one["reason"], one["examples"]) for one in (*others, *preview["skipped"])]
    width = max(len(f"{count:,}") for count, *_ in parts)
    for count, reason, examples in parts:
        more = ", …" if count > len(examples) else ""
        such = f" ({', '.join(map(text.plain, examples))}{more})" if examples else ""
        yield f"{count:>{width},}{text.GAP}{reason}{such}"


def _lines_of_job(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    job = found["job"]
    yield f"Bulk job {job['id']} is {job['status']}: {_progress(job)}"
    if job["pause_reason"]:
        yield text.cut(f"It is paused: {text.plain(job['pause_reason'])}", terminal.width)


def _progress(job: Document) -> str:
    parts = [f"{job['done']:,} of {job['total']:,} done"]
    parts += [f"{job[name]:,} {name}" for name in ("skipped", "failed") if job[name]]
    if job["left"]:
        parts.append(f"{job['left']:,} left")
    if job["rate"] is not None:
        parts.append(f"{job['rate']:,.1f} a second")
    return ", ".join(parts) + "."


def _lines_of_list(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    rows, now = found["jobs"], found["now"]
    if not rows:
        yield "There are no bulk jobs."
        return
    cells = [("STATUS", "ID", "ACTION", "STARTED", "DONE")]
    cells += [
        (row["status"], row["id"], row["action"], text.ago(row["created_at"], now), _done(row))
        for row in rows
    ]
    for row, cell in zip((None, *rows), text.columns(cells), strict=True):
        line = text.cut(text.GAP.join(cell), terminal.width)
        yield line if row is None else line.replace(cell[0], terminal.paint(row["status"], cell[0]), 1)
        if row is not None and _why(row):
            yield text.cut(f"{text.GAP * 2}{_why(row)}", terminal.width)
    if found["older"] is not None:
        yield f"There are more: --before {found['older']}"


def _done(job: Document) -> str:
    failed = f", {job['failed']:,} failed" if job["failed"] else ""
    return f"{job['done']:,} of {job['total']:,}{failed}"


def _why(job: Document) -> str:
    return ": ".join(text.plain(part) for part in (job["actor"], job["reason"]) if part)


def _lines_of_show(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    job = found["job"]
    yield f"{job['id']}  {terminal.paint(job['status'])}"
    for name, said in _facts(job):
        yield text.cut(f"{name:<9}{said}", terminal.width)
    rows = found["items"]
    if not rows:
        return
    yield ""
    yield f"INSTANCES ({options['outcome']})"
    for cell in text.columns([(row["outcome"], text.named(row), _said(row)) for row in rows]):
        yield text.cut(text.GAP.join(cell), terminal.width).rstrip()
    if found["next"] is not None:
        yield f"There are more: --after {found['next']}"


def _facts(job: Document) -> Iterator[tuple[str, str]]:
    how = "".join(f" {name}={json}" for name, json in sorted(job["arguments"].items()))
    yield "action", f"{job['action']}{text.plain(how) and f' ({text.plain(how)})'}"
    yield "search", text.plain(job["query"]) or "instances that were named"
    if _why(job):
        yield "by", _why(job)
    yield "started", text.moment(job["created_at"])
    if job["paused_at"] is not None:
        yield "paused", text.moment(job["paused_at"])
    if job["ended_at"] is not None:
        yield "ended", text.moment(job["ended_at"])
    pace = [_PACE[name].format(number) for name, number in job["pace"].items() if number is not None]
    if pace:
        yield "pace", ", ".join(pace)
    yield "so far", _progress(job)
    if job["pause_reason"]:
        yield "because", text.plain(job["pause_reason"])


def _said(row: Document) -> str:
    said = text.plain(row["message"])
    return f"{text.plain(row['code'])}: {said}" if row["outcome"] == "failed" else said


def _code(found: Document) -> int:
    """Return 1 if something failed, or it ended or stopped before all was done."""
    job = found["job"]
    return int(bool(job["failed"]) or job["status"] in ("paused", "aborted", "errored"))


BULK = (
    Subcommand("bulk list", "list bulk jobs, newest first", _arguments_of_list, _lines_of_list),
    Subcommand(
        "bulk preview",
        "say to how many instances an action applies, and why not to others",
        _take_action,
        _lines_of_preview,
    ),
    Subcommand(
        "bulk start",
        "retry, pause, resume, terminate or restart many instances in the background",
        _arguments_of_start,
        _lines_of_job,
        _code,
    ),
    Subcommand(
        "bulk show", "show a job and what became of its instances", _arguments_of_show, _lines_of_show
    ),
    Subcommand("bulk pause", "stop a job after its current batch", _arguments_of_steering, _lines_of_job),
    Subcommand(
        "bulk resume", "continue a job that is paused or has failed", _arguments_of_steering, _lines_of_job
    ),
    Subcommand("bulk abort", "end a job; what is done stays done", _arguments_of_steering, _lines_of_job),
    Subcommand("bulk retry-failed", "do what failed again", _arguments_of_steering, _lines_of_job),
)
