from __future__ import annotations

import json
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from django.core.management.base import CommandError
from django.db import OperationalError, connections, transaction

from engine.command import refusals
from engine.command.program import Program
from engine.declare.registry import workflows
from engine.invariants import INVARIANTS, OFFENDERS, UNCHECKABLE, Finding, Invariant, look
from engine.status import schema

VIOLATED, UNANSWERED = 1, 2
MOST_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one invariant's check; no finding if the database took too long."""

    invariant: Invariant
    finding: Finding | None
    seconds: float

    @property
    def word(self) -> str:
        if self.finding is None:
            return "?"
        return "FAIL" if self.finding.count else "ok"


class Command(Program):
    help = (
        "Check the engine's tables against its invariants. Only reads, in one REPEATABLE READ transaction, so it may "
        "run while workers run. Each check reads one or two tables once: for a million steps and as many attempts, up "
        "to 4 seconds per check and 40 in total, on one core. "
        f"Exits with {VIOLATED} on a violation and {UNANSWERED} if a check took longer than --timeout, or if the "
        "database does not answer or is not migrated."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--grace", type=_seconds, default=60, help="seconds before something counts as overdue (60)"
        )
        parser.add_argument("--timeout", type=_seconds, default=30, help="seconds for each check (30)")
        parser.add_argument(
            "--database", choices=[*connections], default="default", help="alias of the database (default)"
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        answers: list[Answer] = []
        try:
            _require_tables(options["database"])
            for answer in ask(options["database"], grace=options["grace"], timeout=options["timeout"]):
                if not (answers or options["json"]):
                    self.stdout.write(f"{'':4}  {'id':4} {'count':>6}  what must hold")
                answers.append(answer)
                if not options["json"]:
                    self._show(answer)
        except OperationalError as error:
            raise CommandError(refusals.of_database(error), returncode=UNANSWERED) from error
        if options["json"]:
            self.stdout.write(json.dumps([_plain(answer) for answer in answers], indent=2))
        else:
            self._show_unchecked()
        _judge(answers)

    def _show_unchecked(self) -> None:
        self.stdout.write("Not visible in the tables:")
        for key, what in UNCHECKABLE.items():
            self.stdout.write(f"      {key:4} {'':6}  {what}")

    def _show(self, answer: Answer) -> None:
        count = "" if answer.finding is None else str(answer.finding.count)
        style = {"ok": self.style.SUCCESS, "FAIL": self.style.ERROR, "?": self.style.WARNING}[answer.word]
        one = answer.invariant
        self.stdout.write(f"{style(f'{answer.word:4}')}  {one.id:4} {count:>6}  {one.sentence}")
        if answer.finding is None or not answer.finding.count:
            return
        for offender in answer.finding.offenders:
            self.stdout.write(f"{'':19}{offender}: {offender.detail}")
        if answer.finding.count > OFFENDERS:
            self.stdout.write(f"{'':19}and {answer.finding.count - OFFENDERS} more")


def _require_tables(alias: str) -> None:
    try:
        lacking = schema.missing(alias)
    except psycopg.Error as error:
        raise OperationalError(str(error)) from error
    if lacking:
        raise CommandError(schema.sentence(lacking), returncode=UNANSWERED)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= MOST_SECONDS:
        raise ArgumentTypeError(f'"{text}" is not a number of seconds from 0 to {MOST_SECONDS:,}.')
    return seconds


def ask(alias: str, *, grace: float, timeout: float) -> Iterator[Answer]:
    """Check every invariant against one snapshot of the database."""
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(int(timeout * 1000))])
        for invariant in INVARIANTS:
            started = time.monotonic()
            finding = None
            try:
                with transaction.atomic(using=alias):  # a savepoint: after a timeout the next can be asked
                    finding = look(cursor, invariant, grace=grace, limits=workflows.limits())
            except OperationalError as error:
                if getattr(error.__cause__, "sqlstate", "") != "57014":  # canceled by the timeout
                    raise
            yield Answer(invariant, finding, time.monotonic() - started)


def _plain(answer: Answer) -> dict[str, Any]:
    one, finding = answer.invariant, answer.finding
    return {
        "id": one.id,
        "name": one.name,
        "sentence": one.sentence,
        "count": None if finding is None else finding.count,
        "offenders": []
        if finding is None
        else [
            {"key": bad.key, "workflow": bad.workflow, "id": bad.id, "detail": bad.detail}
            for bad in finding.offenders
        ],
        "seconds": round(answer.seconds, 3),
    }


def _judge(answers: list[Answer]) -> None:
    violated = [answer.invariant.name for answer in answers if answer.word == "FAIL"]
    unanswered = [answer.invariant.name for answer in answers if answer.finding is None]
    if violated:
        raise CommandError(f"Violated: {', '.join(violated)}.", returncode=VIOLATED)
    if unanswered:
        raise CommandError(
            f"Not answered in time: {', '.join(unanswered)}. Try again with a larger --timeout.",
            returncode=UNANSWERED,
        )
