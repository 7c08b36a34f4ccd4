"""Find the few instances that one term of a search leaves, by an index over all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from engine.models import Instance
from engine.status.search import MOST_ALIKE
from engine.status.searching.conditions import failed_alike, ids_begin, is_waiting_for_people, value_test
from engine.status.searching.indexed import Indexed, indexed
from engine.values.query.terms import (
    AtPath,
    Condition,
    FailedAlike,
    Ids,
    Names,
    Operator,
    Statuses,
    Stored,
    System,
    Term,
)
from engine.values.shown import stored

_BY_VALUE = """
SELECT DISTINCT found.instance_id FROM engine_searchvalue AS found
 WHERE found.path_id = ANY (%s) AND {test} LIMIT %s
"""


# What was found for a condition on some workflows: a page and its counts look the same up.
LookedUp = dict[tuple[Condition, tuple[str, ...]], list[int] | None]


def candidates(
    terms: Sequence[Term], names: Collection[str], looked_up: LookedUp | None = None
) -> list[int] | None:
    """Return the keys of all instances that can match, from the term that leaves the fewest; None if each leaves too
    many, or no index has the answer. `names` are the workflows in question. What was
    `looked_up` is not asked again.
    """
    looked_up = {} if looked_up is None else looked_up
    paths = _paths(terms, names)
    best: list[int] | None = None
    for term in terms:
        found = None if term.is_negated else _found(term, names, paths, looked_up)
        if found is not None and (best is None or len(found) < len(best)):
            best = found
            if not best:
                break
    return best


def workflows_of(terms: Sequence[Term], names: Collection[str]) -> list[str]:
    """Return the workflows that the terms leave."""
    left = list(names)
    for term in terms:
        if isinstance(term.condition, Names) and term.condition.field == "workflow":
            patterns = term.condition.patterns
            left = [
                name
                for name in left
                if any(name.startswith(one.text) if one.is_prefix else name == one.text for one in patterns)
                is not term.is_negated
            ]
    return left


def _paths(terms: Sequence[Term], names: Collection[str]) -> dict[str, list[Indexed]]:
    """Return the indexed paths that have the values of all these workflows, by name."""
    wanted = {term.condition.name for term in terms if isinstance(term.condition, AtPath)}
    if not wanted or not names:
        return {}
    found: dict[str, list[Indexed]] = {}
    for one in indexed(names):
        if one.path in wanted and one.is_complete:
            found.setdefault(one.path, []).append(one)
    return {path: those for path, those in found.items() if len(those) == len(names)}


def _found(
    term: Term, names: Collection[str], paths: dict[str, list[Indexed]], looked_up: LookedUp
) -> list[int] | None:
    key = (term.condition, tuple(names))
    if key not in looked_up:
        looked_up[key] = _of_term(term, names, paths)
    return looked_up[key]


def _of_term(term: Term, names: Collection[str], paths: dict[str, list[Indexed]]) -> list[int] | None:
    match term.condition:
        case Ids() as condition:
            return _few(Instance.objects.filter(ids_begin(condition)))
        case FailedAlike() as condition:
            return _few(Instance.objects.filter(failed_alike(condition)))
        case Names(field="workflow") | System(is_system=True):
            return _few(Instance.objects.filter(workflow__in=names))
        case Statuses(names=("approval",)):
            return _few(Instance.objects.filter(is_waiting_for_people()))
        case Statuses() as condition:
            statuses = {status for name in condition.names for status, _ in stored(name)}
            return _few(Instance.objects.filter(workflow__in=names, status__in=statuses))
        case Stored() as condition:
            return _few(Instance.objects.filter(workflow__in=names, status__in=condition.statuses))
        case AtPath() as condition if condition.name in paths and condition.operator is not Operator.IS_NOT:
            return _by_value(condition, [one.key for one in paths[condition.name]])
    return None


def _few(rows: QuerySet[Instance]) -> list[int] | None:
    keys = list(rows.order_by().values_list("key", flat=True)[: MOST_ALIKE + 1])
    return keys if len(keys) <= MOST_ALIKE else None


def _by_value(condition: AtPath, paths: Sequence[int]) -> list[int] | None:
    test, values = value_test(condition)
    params: list[Any] = [[*paths], *values, MOST_ALIKE + 1]
    with connection.cursor() as cursor:
        cursor.execute(_BY_VALUE.format(test=test), params)
        keys = [row[0] for row in cursor.fetchall()]
    return keys if len(keys) <= MOST_ALIKE else None
