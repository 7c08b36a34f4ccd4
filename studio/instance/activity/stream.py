"""Read the stream of an instance: a page of it, what is new above a page, and the latest that people did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import Q

from engine.models import Audit, Instance
from studio.approvals.entry import Given
from studio.display import payloads
from studio.instance.activity import attempts, sources
from studio.instance.activity.entry import BOTTOM, Cursor, Entries, Entry, Kind, Source, together
from studio.instance.activity.steps import Number, names_of
from studio.instance.activity.wanted import Wanted

PAGE = 50
LIVE = 150  # entries of a page with what is new above it
PEOPLE_READ = 500  # rows of the audit trail in which names of people are looked for
PEOPLE_SHOWN = 5
EVERYTHING = Wanted()
NOWHERE: Number = (0, 0)


@dataclass(frozen=True, slots=True)
class Following:
    """A page and what is new above it. If that is too much, `newest` has the newest of it, and `gap` the position of
    those that are left out."""

    shown: tuple[Entry, ...]
    older: Cursor | None
    newest: tuple[Entry, ...] = ()
    gap: Cursor | None = None


def page_of(
    instance: Instance, wanted: Wanted = EVERYTHING, before: Cursor | None = None, limit: int = PAGE
) -> Entries:
    """Return the newest page of all generations, or the page before a position."""
    below = before.below if before is not None else {}
    lists = {
        source: sources.read(source, instance, wanted, below.get(source), limit + 1)
        for source in sources.sources_of(wanted)
    }
    found = together(lists, limit)
    return replace(found, shown=_named(instance, found.shown))


def following(instance: Instance, wanted: Wanted, first: Cursor, last: Cursor) -> Following:
    """Return the entries of a first page between two positions, and the newer ones."""
    found = page_of(instance, wanted, limit=LIVE)
    if found.older is None or found.older.is_at_or_below(last):
        return Following(_down_to(found, last), None if last == BOTTOM else last)
    newer = page_of(instance, wanted, limit=LIVE - PAGE)
    new = tuple(entry for entry in newer.shown if not first.is_above(entry))
    own = _down_to(page_of(instance, wanted, first), last)
    if wanted.has(Kind.ATTEMPTS):
        place = Source.ATTEMPT
        ended = attempts.ended_since(instance, first.below[place], last.below[place], PAGE)
        own = (*_named(instance, [entry for entry in ended if entry.id not in {one.id for one in new}]), *own)
    return Following(own, last, new, newer.older)


def _down_to(found: Entries, last: Cursor) -> tuple[Entry, ...]:
    return tuple(entry for entry in found.shown if not last.is_above(entry))


def latest_from_people(instance: Instance, limit: int = 3) -> tuple[Entry, ...]:
    """Return the newest notes, and the newest votes and actions of people and named programs."""
    is_said = Q(verb="note") | ~Q(actor="")
    rows = Audit.objects.filter(is_said, instance_key=instance.key, outcome="done")
    entries = [
        Entry(Source.AUDIT, sources.kind_of(row), (row.key,), row.at, row)
        for row in rows.order_by("-key")[:limit]
    ]
    return _named(instance, entries)


def people_of(instance: Instance, wanted: Wanted) -> list[str]:
    """Return who did something lately, the latest first, for the filter."""
    rows = Audit.objects.filter(instance_key=instance.key).order_by("-key")
    names = rows.values_list("actor", flat=True)[:PEOPLE_READ]
    found = dict.fromkeys(name for name in ([wanted.by] if wanted.by else []) + [*names] if name)
    return list(found)[:PEOPLE_SHOWN]


def _named(instance: Instance, entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Add what the entries name: their steps, and what was answered."""
    numbers = {entry.id: number for entry in entries if (number := _step_of(entry)) is not None}
    names = names_of(instance, numbers.values())
    votes = [entry.row for entry in entries if entry.kind == Kind.VOTES]
    answers = sources.answers_of(instance, votes)
    named = (replace(entry, step=names.get(numbers.get(entry.id, NOWHERE))) for entry in entries)
    return tuple(_with_answer(entry, answers) if entry.kind == Kind.VOTES else entry for entry in named)


def _with_answer(vote: Entry, answers: Mapping[int, Given]) -> Entry:
    given = answers.get(vote.row.key)
    if given is None:
        return vote
    is_plain = given.value.text in ("true", "false", "null")
    text = "" if is_plain else payloads.one_line(given.value.text, sources.SHOWN)
    return replace(vote, text=text, is_approval=given.is_approval)


def _step_of(entry: Entry) -> Number | None:
    """Return the number of the step that an entry is about, if it is about one."""
    row = entry.row
    if entry.source == Source.EVENT:
        return (row.consumed_generation, row.consumed_by) if row.state == "consumed" else None
    if entry.source == Source.AUDIT:
        return sources.step_of(row)
    return (row.generation, row.step_seq) if row.step_seq is not None else None
