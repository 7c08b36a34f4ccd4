"""The newest instances of workflows and statuses: the first page of most searches, by indexes that have their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection

from engine.status.search import MOST_ALIKE
from engine.values.query.terms import Condition, Names, Statuses, Stored, System, Term
from engine.values.shown import stored
from engine.values.states import InstanceStatus, WaitingFor

# Row comparisons: with plain equalities the planner may scan the primary key, past the rows of all other workflows.
_NEWEST = """
(SELECT newest.key
   FROM unnest(%(names)s::text[]) AS name(workflow)
  CROSS JOIN unnest(%(statuses)s::text[]) AS state(status)
  CROSS JOIN LATERAL (
        SELECT i.key FROM engine_instance i
         WHERE (i.workflow, i.status) >= (name.workflow, state.status)
           AND (i.workflow, i.status) <= (name.workflow, state.status)
         ORDER BY i.workflow, i.status, i.key DESC LIMIT %(most)s) AS newest
  UNION ALL
 SELECT newest.key
   FROM unnest(%(names)s::text[]) AS name(workflow)
  CROSS JOIN unnest(%(kinds)s::text[]) AS kind(waiting_for)
  CROSS JOIN LATERAL (
        SELECT i.key FROM engine_instance i
         WHERE i.status = 'waiting' AND (i.workflow, i.waiting_for) >= (name.workflow, kind.waiting_for)
           AND (i.workflow, i.waiting_for) <= (name.workflow, kind.waiting_for)
         ORDER BY i.workflow, i.waiting_for, i.key DESC LIMIT %(most)s) AS newest)
 ORDER BY key DESC LIMIT %(most)s
"""
# Requests are in the order of their instances. Whether they are open, and of which workflow, the search asks anyway.
_ASKED = "SELECT instance_id FROM engine_open_request ORDER BY instance_id DESC LIMIT %(most)s"
_SIZES = (200, 2_000, MOST_ALIKE)
_APPROVAL = ("approval",)
_WAITING = {(str(InstanceStatus.WAITING), str(kind)) for kind in WaitingFor}
_ALL = {(str(status), "") for status in InstanceStatus if status != InstanceStatus.WAITING} | _WAITING


def is_newest_first(terms: Sequence[Term]) -> bool:
    """Tell whether the newest that match all terms can be found so: the terms name workflows and statuses only."""
    return bool(terms) and all(_is_named(term) for term in terms)


def _is_named(term: Term) -> bool:
    match term.condition:
        case Statuses(names=names):
            return not term.is_negated and (names == _APPROVAL or "approval" not in names)
        case Stored():
            return not term.is_negated
        case Names(field="workflow") | System():
            return True
    return False


def newest(terms: Sequence[Term], names: Sequence[str]) -> Iterator[tuple[list[int], bool]]:
    """Yield more and more keys of the newest instances of these workflows that can match, and whether these are all."""
    statement, values, sizes = _statement(terms)
    for size in sizes:
        with connection.cursor() as cursor:
            cursor.execute(statement, values | {"names": [*names], "most": size + 1})
            keys = [row[0] for row in cursor.fetchall()]
        yield [*dict.fromkeys(keys[:size])], len(keys) <= size


def _statement(terms: Sequence[Term]) -> tuple[str, dict[str, Any], tuple[int, ...]]:
    """Return what finds the keys, its values, and how many to find at a time."""
    if any(isinstance(term.condition, Statuses) and term.condition.names == _APPROVAL for term in terms):
        return _ASKED, {}, _SIZES[:1]  # if these are not enough, all open requests are few
    pairs = set(_ALL)
    for term in terms:
        pairs &= _pairs(term.condition)
    kinds = sorted(kind for _, kind in pairs if kind)
    statuses = {status for status, kind in pairs if not kind}
    if len(kinds) == len(_WAITING):
        kinds, statuses = [], {*statuses, "waiting"}
    return _NEWEST, {"statuses": sorted(statuses), "kinds": kinds}, _SIZES


def _pairs(condition: Condition) -> set[tuple[str, str]]:
    """Return what the rows have that can match: the status, and what those that wait wait for."""
    match condition:
        case Statuses(names=names):
            return _of_stored(pair for name in names for pair in stored(name))
        case Stored(statuses=statuses):
            return _of_stored((status, None) for status in statuses)
    return _ALL


def _of_stored(pairs: Iterator[tuple[str, str | None]]) -> set[tuple[str, str]]:
    found = set[tuple[str, str]]()
    for status, kind in pairs:
        if status != InstanceStatus.WAITING:
            found.add((status, ""))
        else:
            found |= {pair for pair in _WAITING if kind in (None, pair[1])}
    return found
