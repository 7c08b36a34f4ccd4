"""Replay open instances with the code of this process."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout

from engine.command import text
from engine.command.address import Address
from engine.command.local.finding import check_workflow, find
from engine.command.subcommand import Options, Terminal, UsageError
from engine.dry_run import replaying
from engine.dry_run.verdict import Finding, Verdict
from engine.status.documents import Document
from engine.values.errors import InstanceFinishedError

PROBLEMS = 1  # the exit code if an instance would not simply go on


def replay(terminal: Terminal, options: Options) -> int:
    """Print what is found. Return the exit code."""
    counts: Counter[Verdict] = Counter()
    problems = _problems(_findings(options), counts)
    with redirect_stdout(sys.stderr):  # what handlers print; the terminal has its own stream
        _answer(terminal, problems, counts, options["limit"])
    return PROBLEMS if counts.total() > counts[Verdict.FITS] else 0


def _answer(terminal: Terminal, problems: Iterator[Finding], counts: Counter[Verdict], limit: int) -> None:
    if terminal.is_json:
        shown = [_document(one) for one in _first(problems, limit)]
        terminal.answer({"findings": shown, "replayed": counts.total(), **_counts(counts)}, list)
    else:
        terminal.answer({}, lambda: _lines(terminal, problems, counts, limit))


def _findings(options: Options) -> Iterable[Finding]:
    address: Address | None = options["instance"]
    if address is None:
        for name in options["workflow"] or ():
            check_workflow(name)
        return replaying.replay_open(options["workflow"], timeout=options["timeout"])
    if options["workflow"]:
        raise UsageError("--workflow goes with --all-open. An instance is named as WORKFLOW/ID.")
    instance = find(address)
    found = replaying.replay_one(instance.key, timeout=options["timeout"])
    if found is None:
        raise InstanceFinishedError(instance.refresh().workflow, instance.id, instance.status, "replay")
    return [found]


def _problems(findings: Iterable[Finding], counts: Counter[Verdict]) -> Iterator[Finding]:
    """Count all findings, and yield those that name a problem."""
    for one in findings:
        counts[one.verdict] += 1
        if one.verdict is not Verdict.FITS:
            yield one


def _first(problems: Iterator[Finding], limit: int) -> Iterator[Finding]:
    """Yield the first ones, and count the others."""
    for at, one in enumerate(problems):
        if at < limit:
            yield one


def _counts(counts: Counter[Verdict]) -> dict[str, int]:
    return {str(verdict): counts[verdict] for verdict in Verdict}


def _lines(
    terminal: Terminal, problems: Iterator[Finding], counts: Counter[Verdict], limit: int
) -> Iterator[str]:
    for one in _first(problems, limit):
        yield f"{terminal.paint(str(one.verdict), f'{one.verdict:7}')}{text.GAP}{one.workflow}/{one.id}  ({one.status})"
        where = f'step "{text.plain(one.step)}": ' if one.step else ""
        yield f"{'':7}{text.GAP}{where}{text.plain(one.reason)}"
    found = counts.total() - counts[Verdict.FITS]
    if found > limit:
        yield f"and {found - limit:,} more: --limit shows up to 1,000."
    yield _summary(counts)


def _summary(counts: Counter[Verdict]) -> str:
    said = [
        f"{counts[Verdict.FITS]:,} would go on as recorded",
        f"{counts[Verdict.DIFFERS]:,} would take another way",
        f"{counts[Verdict.STOPS]:,} would stop",
        f"{counts[Verdict.UNKNOWN]:,} of a workflow that the code does not declare",
    ]
    return f"{text.count(counts.total(), 'open instance')} replayed: {', '.join(said)}. Nothing was written."


def _document(one: Finding) -> Document:
    """Return what a dry run found out about an instance."""
    return {
        "workflow": one.workflow,
        "id": one.id,
        "status": one.status,
        "verdict": one.verdict,
        "error": one.error or None,
        "step": one.step or None,
        "reason": one.reason,
        "new_steps": list(one.new),
        "unreached_steps": list(one.unreached),
    }
