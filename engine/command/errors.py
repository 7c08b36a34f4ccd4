"""`workflow errors list`, `show`, `resolve`, `ignore`, `reopen` and `note`: failures that are alike, as one group."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from engine.command import text
from engine.command.address import natural, take_limit, take_name, take_origin
from engine.command.audit_lines import audit_lines
from engine.command.note import mentions_line, take_text
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.errors import error_line
from engine.status.json_text import Document
from engine.values.durations import parse_duration

STATES = ["open", "resolved", "ignored", "all"]
WHICH = ["errored", "retrying", "paused", "went_on"]
UNITS = ["day", "hour", "minutes"]
INDENT = "  "
WIDEST_BAR = 40

_PLACE = re.compile(r"[0-9]{1,16}-[0-9a-f]{16}")
_FINGERPRINT = re.compile(r"[0-9a-f]{16}")


def _arguments_of_list(parser: ArgumentParser) -> None:
    parser.add_argument("--workflow", metavar="NAME", help="only those of this workflow")
    parser.add_argument("--state", choices=STATES, default="open", help="only those in this state (open)")
    parser.add_argument(
        "--query", metavar="TEXT", help="only those with this text in the error, its place or the workflow"
    )
    take_limit(parser, "groups")
    parser.add_argument(
        "--before",
        type=_place,
        metavar="KEY",
        help='only those after it: the "older" key of the previous page',
    )


def _lines_of_list(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    rows, now = found["groups"], found["now"]
    if not rows:
        yield "No errors match."
        return
    cells = [("FINGERPRINT", "LAST", "ERRORED", "RETRYING", "IN 14 D", "WORKFLOW, STEP")]
    cells += [
        (row["fingerprint"], text.ago(row["last_seen"], now), *_numbers(row), _place_of(row)) for row in rows
    ]
    for row, cell in zip((None, *rows), text.columns(cells), strict=True):
        yield text.cut(text.GAP.join(cell), terminal.width)
        if row is not None:
            state = "" if row["state"] == "open" else f"{row['state']}: "
            yield text.cut(f"{INDENT * 2}{state}{_said(row)}", terminal.width)
    if found["older"] is not None:
        yield f"There are more: --before {found['older']}"


def _numbers(row: Document) -> tuple[str, str, str]:
    return f"{row['errored']:,}", f"{row['retrying']:,}", f"{row['attempts']:,}"


def _place_of(row: Document) -> str:
    step = f", {text.plain(row['step'])}" if row["step"] else ""
    return f"{row['workflow']}{step}{' (rollback)' if row['phase'] == 'rollback' else ''}"


def _said(row: Document) -> str:
    return text.plain(error_line({"type": row["type"], "message": row["message"]}))


def _arguments_of_show(parser: ArgumentParser) -> None:
    _take_fingerprint(parser)
    parser.add_argument("--full", action="store_true", help="include the traceback of the latest failure")
    parser.add_argument("--which", choices=WHICH, default="errored", help="which instances (errored)")
    parser.add_argument(
        "--unit", choices=UNITS, default="day", help="14 days, 24 hours, or 20 × 3 minutes (day)"
    )
    take_limit(parser, "instances")


def _lines_of_show(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    row = found["group"]
    yield f"{row['fingerprint']}  {row['state']}"
    yield text.cut(_said(row), terminal.width)
    yield ""
    for name, said in _facts(found):
        yield text.cut(f"{name:<12}{said}", terminal.width)
    yield from audit_lines(terminal, found["audit"], found["now"])
    yield from _latest(terminal, found["latest"], full=options["full"])
    yield from _shares(terminal, found["shares"])
    yield from _bars(found["trend"])
    yield from _instances(terminal, found, options["which"])


def _facts(found: Document) -> Iterator[tuple[str, str]]:
    row, now = found["group"], found["now"]
    yield "workflow", row["workflow"]
    if row["step"]:
        yield "step", text.plain(row["step"]) + (" (rollback)" if row["phase"] == "rollback" else "")
    if row["frame"]:
        yield "code", text.plain(row["frame"])
    yield "first", f"{text.moment(row['first_seen'])} ({text.ago(row['first_seen'], now)})"
    yield "last", f"{text.moment(row['last_seen'])} ({text.ago(row['last_seen'], now)})"
    yield "failures", f"{row['attempts']:,} in 14 days"
    now_failing = f"{row['errored']:,} errored, {row['retrying']:,} waiting for a retry"
    yield "instances", f"{now_failing}, {found['paused']:,} paused, {found['went_on']:,} went on"
    if row["decided_at"]:
        yield from _decision(row)
    if found["recovered"]:
        many = text.count(found["recovered"]["count"], "success", "successes")
        yield "recovered", f"{many} since the last failure"
    if found["elsewhere"]:
        others = (
            f"{one['workflow']} ({one['errored']:,} errored, {one['fingerprint']})"
            for one in found["elsewhere"]
        )
        yield "also in", ", ".join(others)


def _decision(row: Document) -> Iterator[tuple[str, str]]:
    by = f" by {text.plain(row['decided_by'])}" if row["decided_by"] else ""
    yield "decided", f"{text.moment(row['decided_at'])}{by}"
    limits = [f"until {text.moment(row['ignored_until'])}"] if row["ignored_until"] else []
    if row["ignored_count"]:
        limits.append(f"until {text.count(row['ignored_count'], 'more failure')}")
    if limits:
        yield "ignored", " or ".join(limits)
    if row["reason"]:
        yield "reason", text.plain(row["reason"])


def _latest(terminal: Terminal, latest: Document | None, *, full: bool) -> Iterator[str]:
    if latest is None:
        return
    yield ""
    yield "LATEST FAILURE"
    of = f" of {latest['max_attempts']}" if latest["max_attempts"] else ""
    attempt = (
        f"step {latest['step']}, attempt {latest['attempt']}{of}, " if latest["step"] is not None else ""
    )
    yield f"{text.named(latest)}: {attempt}{text.moment(latest['failed_at'])}"
    yield text.cut(INDENT + text.plain(error_line(latest["error"])), terminal.width)
    if full and latest["error"]:
        for line in str(latest["error"].get("traceback") or "").splitlines():
            yield INDENT + text.shown(line)


def _shares(terminal: Terminal, shares: Sequence[Document]) -> Iterator[str]:
    if not shares:
        return
    yield ""
    yield "IN COMMON"
    for one in shares:
        usual = (
            f"usually {_percent(one['usual_count'], one['usual_of'])}"
            if one["usual_of"]
            else "no others to compare"
        )
        said = f"{_percent(one['count'], one['of'])} have {one['what']} = {text.plain(one['value'])}, {usual}"
        yield text.cut(said, terminal.width)


def _percent(count: int, of: int) -> str:
    return f"{count * 100 // of} % ({count:,} of {of:,})"


def _bars(trend: Sequence[Document]) -> Iterator[str]:
    most = max(bar["failures"] for bar in trend)
    if not most:
        return
    yield ""
    yield "FAILURES"
    for bar in trend:
        size = -(-bar["failures"] * WIDEST_BAR // most)
        yield f"{bar['at']:%m-%d %H:%M}  {bar['failures']:>9,}  {'#' * size}".rstrip()


def _instances(terminal: Terminal, found: Document, which: str) -> Iterator[str]:
    rows = found["instances"]
    if not rows:
        return
    yield ""
    yield f"INSTANCES ({which.replace('_', ' ')}, newest first)"
    cells = [(row["status"], text.ago(row["created_at"], found["now"]), text.named(row)) for row in rows]
    for row, cell in zip(rows, text.columns(cells), strict=True):
        line = text.cut(text.GAP.join(cell), terminal.width)
        yield line.replace(cell[0], terminal.paint(row["status"], cell[0]), 1)


def _take_fingerprint(parser: ArgumentParser) -> None:
    parser.add_argument("fingerprint", type=_fingerprint, metavar="FINGERPRINT", help="the group: 16 digits")


def _arguments(parser: ArgumentParser) -> None:
    _take_fingerprint(parser)
    take_origin(parser)


def _arguments_of_ignore(parser: ArgumentParser) -> None:
    _take_fingerprint(parser)
    parser.add_argument(
        "--until", type=_until, metavar="WHEN", help="until 2026-12-01T09:00Z, or for so long: 7d"
    )
    parser.add_argument("--count", type=natural, metavar="N", help="until it has failed so many times more")
    take_origin(parser, needs_reason=True)


def _lines_of_decision(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    row = found["group"]
    yield text.cut(f"{row['fingerprint']} is {row['state']}: {_said(row)}", terminal.width)


def _arguments_of_note(parser: ArgumentParser) -> None:
    _take_fingerprint(parser)
    take_text(parser)
    take_name(parser)


def _lines_of_note(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    yield f"The note was added to {options['fingerprint']}."
    yield from mentions_line(found["note"])


def until(options: Options) -> datetime | None:
    """Return the moment until which a group is ignored."""
    wanted = options["until"]
    return datetime.now(UTC) + wanted if isinstance(wanted, timedelta) else wanted


def _until(given: str) -> datetime | timedelta:
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        try:
            return parse_duration(given)
        except ValueError as problem:
            raise ArgumentTypeError(str(problem)) from None
    if moment.tzinfo is None:
        raise ArgumentTypeError(f'"{given}" has no time zone. Write it like 2026-12-01T09:00Z.')
    return moment


def _fingerprint(given: str) -> str:
    if not _FINGERPRINT.fullmatch(given):
        raise ArgumentTypeError(
            f'"{given}" is not a fingerprint. Pass the 16 digits that `errors list` prints.'
        )
    return given


def _place(given: str) -> str:
    if not _PLACE.fullmatch(given):
        raise ArgumentTypeError(f'"{given}" is not a key. Pass the "older" key of the previous page.')
    return given


ERRORS = (
    Subcommand("errors list", "list groups of errors, the latest first", _arguments_of_list, _lines_of_list),
    Subcommand(
        "errors show",
        "show a group: what its instances have in common, how often it fails, its latest failure",
        _arguments_of_show,
        _lines_of_show,
    ),
    Subcommand(
        "errors resolve", "call a group resolved, until it fails again", _arguments, _lines_of_decision
    ),
    Subcommand(
        "errors ignore",
        "ignore a group: until a time, until it has failed so often, or until it is reopened",
        _arguments_of_ignore,
        _lines_of_decision,
    ),
    Subcommand("errors reopen", "withdraw the decision about a group", _arguments, _lines_of_decision),
    Subcommand("errors note", "add a note to a group", _arguments_of_note, _lines_of_note),
)
