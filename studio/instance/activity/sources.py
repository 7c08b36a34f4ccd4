"""Read entries from the four tables, each in the order of one of its indexes, and never more than a page.

Attempts are the exception: see `attempts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db.models import Q

from engine.models import Audit, Event, Instance, Log
from engine.status.snapshot import with_prefixes
from engine.steer.requests import ANSWER
from engine.values.identity import REQUEST_TYPE, request_type
from engine.values.states import Action
from studio.approvals.entry import Given, given
from studio.display import payloads
from studio.instance.activity import attempts
from studio.instance.activity.entry import Entry, Kind, Place, Source
from studio.instance.activity.steps import Number
from studio.instance.activity.wanted import Wanted

PREFIX = 2_000  # characters that are read of a payload
SHOWN = 160  # and shown


def sources_of(wanted: Wanted) -> list[Source]:
    """Return the tables that have entries of a filter."""
    of_audit = (Kind.ACTIONS, Kind.VOTES, Kind.NOTES)
    has = {
        Source.AUDIT: any(wanted.has(kind) for kind in of_audit),
        Source.EVENT: wanted.has(Kind.EVENTS),
        Source.LOG: wanted.has(Kind.LOGS),
        Source.ATTEMPT: wanted.has(Kind.ATTEMPTS),
    }
    return [source for source in Source if has[source]]


def read(source: Source, instance: Instance, wanted: Wanted, below: Place | None, limit: int) -> list[Entry]:
    """Return the newest entries of a table below a place."""
    return _READERS[source](instance, wanted, below, limit)


def audit_rows(instance: Instance, wanted: Wanted) -> Any:
    """Return the query for the rows of the audit trail.

    What was sent is shown as the event that it became; only its reason, if there is one, is nowhere else.
    """
    rows = Audit.objects.filter(instance_key=instance.key)
    rows = rows.exclude(verb=Action.SEND_EVENT, outcome="done", reason="")
    if wanted.by:
        rows = rows.filter(actor=wanted.by)
    is_vote, is_note = Q(verb=ANSWER, outcome="done"), Q(verb="note", outcome="done")
    parts = {Kind.VOTES: is_vote, Kind.NOTES: is_note, Kind.ACTIONS: ~(is_vote | is_note)}
    left = [part for kind, part in parts.items() if wanted.has(kind)]
    if len(left) == len(parts):
        return rows
    asked = Q(pk__in=[])
    for part in left:
        asked |= part
    return rows.filter(asked)


def event_rows(instance: Instance, wanted: Wanted) -> Any:
    """Return the query for its events. An answer is shown as the vote that it is."""
    rows = Event.objects.filter(instance_id=instance.key).exclude(type__startswith=REQUEST_TYPE)
    return rows.filter(sent_by=wanted.by) if wanted.by else rows


def kind_of(row: Audit) -> Kind:
    if row.is_note:
        return Kind.NOTES
    return Kind.VOTES if row.verb == ANSWER and row.outcome == "done" else Kind.ACTIONS


def _audit(instance: Instance, wanted: Wanted, below: Place | None, limit: int) -> list[Entry]:
    rows = list(_below(audit_rows(instance, wanted), below)[:limit])
    return [Entry(Source.AUDIT, kind_of(row), (row.key,), row.at, row) for row in rows]


def _events(instance: Instance, wanted: Wanted, below: Place | None, limit: int) -> list[Entry]:
    rows = with_prefixes(_below(event_rows(instance, wanted), below), "payload", length=PREFIX)
    return [
        Entry(Source.EVENT, Kind.EVENTS, (row.key,), row.received_at, row, text=_beginning(row.payload_text))
        for row in rows[:limit]
    ]


def _logs(instance: Instance, wanted: Wanted, below: Place | None, limit: int) -> list[Entry]:
    rows = _below(Log.objects.filter(instance_id=instance.key), below)[:limit]
    return [Entry(Source.LOG, Kind.LOGS, (row.key,), row.at, row) for row in rows]


def _below(rows: Any, below: Place | None) -> Any:
    return (rows.filter(key__lt=below[0]) if below else rows).order_by("-key")


def answers_of(instance: Instance, rows: Sequence[Audit]) -> Mapping[int, Given]:
    """Return what votes answered, by their key."""
    asked = {row.key: request_type(*number) for row in rows if (number := step_of(row)) is not None}
    if not asked:
        return {}
    events = Event.objects.filter(instance_id=instance.key, dedup_key__in=set(asked.values()))
    answers = {event.dedup_key: given(event) for event in events}
    return {key: answers[name] for key, name in asked.items() if name in answers}


def step_of(row: Audit) -> Number | None:
    """Return the step that a vote answered."""
    data = row.data if isinstance(row.data, dict) else {}
    generation, seq = data.get("generation"), data.get("seq")
    if kind_of(row) != Kind.VOTES or not isinstance(generation, int) or not isinstance(seq, int):
        return None
    return generation, seq


def _beginning(text: str | None) -> str:
    """Return the beginning of a payload."""
    return "" if text is None or text == "null" else payloads.one_line(text, SHOWN)


_Reader = Callable[[Instance, Wanted, "Place | None", int], list[Entry]]
_READERS: Mapping[Source, _Reader] = {
    Source.AUDIT: _audit,
    Source.EVENT: _events,
    Source.LOG: _logs,
    Source.ATTEMPT: attempts.read,
}
