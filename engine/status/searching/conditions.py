"""Conditions of a search, as conditions on rows of instances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import BooleanField, Exists, OuterRef, Q
from django.db.models.expressions import RawSQL

from engine.status.search import id_begins
from engine.status.searching.span import Span
from engine.steer.requests import open_requests
from engine.values.query.terms import (
    AtPath,
    Bound,
    Condition,
    Errors,
    FailedAlike,
    Free,
    Ids,
    Literal,
    Moments,
    Names,
    Operator,
    Pattern,
    Statuses,
    Stored,
    System,
    Term,
    Took,
)
from engine.values.shown import PARKED, stored
from engine.values.system import PREFIX

# When the current generation began, as lists show it.
BEGAN = """
CASE WHEN engine_instance.generation > 1 THEN coalesce(
    (SELECT max(a.at) FROM engine_audit a
      WHERE a.instance_key = engine_instance.key AND a.verb = 'restart' AND a.outcome = 'done'),
    engine_instance.started_at, engine_instance.created_at)
ELSE coalesce(engine_instance.started_at, engine_instance.created_at) END
"""
_ERROR_HAS = "position(lower(%s) IN lower(concat_ws(': ', {error} ->> 'type', {error} ->> 'message'))) > 0"
# Only a retrying instance has an error that is not in its own row. OFFSET 0, so that the planner does not look at the
# attempts of all instances first.
_HAS_ERROR = f"""
engine_instance.error IS NOT NULL AND {_ERROR_HAS.format(error="engine_instance.error")}
OR engine_instance.pause_reason IS NOT NULL AND {_ERROR_HAS.format(error="engine_instance.pause_reason")}
OR engine_instance.status = 'waiting' AND engine_instance.waiting_for = 'retry' AND EXISTS (
    SELECT FROM engine_attempt a
     WHERE a.instance_id = engine_instance.key AND a.generation = engine_instance.generation
       AND a.error IS NOT NULL AND {_ERROR_HAS.format(error="a.error")} OFFSET 0)
"""
# Within the keys in question: the planner may read the steps of all instances otherwise, to find a name among them.
_HAS_STEP = """
EXISTS (SELECT FROM engine_step s
         WHERE s.instance_id >= %s AND s.instance_id < %s
           AND s.instance_id = engine_instance.key AND s.generation = engine_instance.generation AND {name})
"""
_HAS_TAG = "EXISTS (SELECT FROM unnest(engine_instance.tags) AS tag WHERE {name})"
_AT_PATH = "EXISTS (SELECT FROM engine_search_value(engine_instance.{root}, %s) AS found WHERE {test})"
_COMPARED = {Operator.LESS: "<", Operator.AT_MOST: "<=", Operator.MORE: ">", Operator.AT_LEAST: ">="}

Sql = tuple[str, list[Any]]


def row_condition(term: Term, span: Span) -> Q:
    """Return what a term asks of a row with a key in this span."""
    condition = term.condition
    if isinstance(condition, Names) and condition.field == "step":
        found = _steps(condition, span)
    else:
        found = _READERS[type(condition)](condition)
    return ~found if term.is_negated else found


def has_key(keys: Sequence[int]) -> Q:
    """Return the condition for these keys, as one value: Django takes 20 ms for ten thousand.

    Small numbers would be an array of another type than the column, in which PostgreSQL looks at one after the other.
    """
    return Q(RawSQL("engine_instance.key = ANY (%s::bigint[])", [[*keys]], output_field=BooleanField()))


def is_waiting_for_people() -> Q:
    return Q(status="waiting", key__in=open_requests().values("instance_id"))


def value_test(condition: AtPath) -> Sql:
    """Return the test of a value at a path: of the columns `text` and `number` of `found`."""
    operator, literals = condition.operator, condition.literals
    if operator is Operator.EXISTS:
        return "true", []
    if operator in (Operator.IS, Operator.IS_NOT):
        text, values = _any(_is(one) for one in literals)
        return (text, values) if operator is Operator.IS else (f"NOT coalesce({text}, false)", values)
    (literal,), sign = literals, _COMPARED[operator]
    if literal.number is not None and not literal.is_quoted:
        return f"found.number {sign} %s::numeric", [literal.number]
    return f'found.number IS NULL AND found.text COLLATE "C" {sign} %s', [literal.text]


def _is(literal: Literal) -> Sql:
    if literal.is_prefix:
        return "starts_with(found.text, %s)", [literal.text]
    if literal.is_quoted:
        return "found.text = %s AND found.number IS NULL", [literal.text]
    if literal.number is not None:
        return "found.text = %s OR found.number = %s::numeric", [literal.text, literal.number]
    return "found.text = %s", [literal.text]


def _at_path(condition: AtPath) -> Q:
    test, values = value_test(condition)
    return _raw(_AT_PATH.format(root=condition.path[0], test=test), [condition.name, *values])


def _names(condition: Names) -> Q:
    match condition.field:
        case "workflow":
            return _either(
                Q(workflow__startswith=one.text) if one.is_prefix else Q(workflow=one.text)
                for one in condition.patterns
            )
        case "tag" if not any(one.is_prefix for one in condition.patterns):
            return Q(tags__overlap=[one.text for one in condition.patterns])
        case "tag":
            text, values = _named("tag", condition.patterns)
            return _raw(_HAS_TAG.format(name=text), values)
        case _:
            text, values = _named("lower(engine_instance.started_by)", condition.patterns, "lower(%s)")
            return _raw(text, values)


def _steps(condition: Names, span: Span) -> Q:
    text, values = _named("s.name", condition.patterns)
    return _raw(_HAS_STEP.format(name=text), [span.low, span.top, *values])


def _named(column: str, patterns: Sequence[Pattern], value: str = "%s") -> Sql:
    return _any(
        (f"starts_with({column}, {value})" if one.is_prefix else f"{column} = {value}", [one.text])
        for one in patterns
    )


def _statuses(condition: Statuses) -> Q:
    """Return the condition for shown statuses. A parked instance with an open request has the status `approval`."""
    names = {*condition.names}
    parked, others = names & {*PARKED}, names - {*PARKED, "approval"}
    found = [_pairs(name) for name in others]
    if "approval" in names and parked == {*PARKED}:
        found.append(Q(status="waiting"))
    elif "approval" in names:
        found += [_pairs(name) for name in parked]
        found.append(is_waiting_for_people())
    elif parked:
        is_asking = Exists(open_requests().filter(instance_id=OuterRef("key")))
        found.append(_either(_pairs(name) for name in parked) & ~Q(is_asking))
    return _either(found)


def _pairs(name: str) -> Q:
    return _either(
        Q(status=status) if waiting_for is None else Q(status=status, waiting_for=waiting_for)
        for status, waiting_for in stored(name)
    )


def ids_begin(condition: Ids) -> Q:
    return _either(id_begins(text) for text in condition.beginnings)


def _errors(condition: Errors) -> Q:
    return _either(_raw(_HAS_ERROR, [text] * 3) for text in condition.texts)


def failed_alike(condition: FailedAlike) -> Q:
    # Without the test for NULL, its negation would leave out all in which nothing has failed.
    return Q(fingerprint__isnull=False, fingerprint__in=condition.fingerprints)


def _of_system() -> Q:
    return Q(workflow__startswith=PREFIX)


def _free(condition: Free) -> Q:
    return id_begins(condition.text) | _errors(Errors((condition.text,)))


def _moments(condition: Moments) -> Q:
    column = "created_at" if condition.field == "started" else "finished_at"
    parts = list[Sql]()
    for bound, sign in ((condition.after, ">"), (condition.before, "<")):
        if bound is not None:
            parts.append(_beyond(f"engine_instance.{column}", sign, bound))
    text = " AND ".join(part for part, _ in parts) or "true"
    return _raw(text, [value for _, values in parts for value in values])


def _beyond(column: str, sign: str, bound: Bound[datetime | timedelta]) -> Sql:
    sign += "=" if bound.is_inclusive else ""
    moment = "statement_timestamp() - %s" if isinstance(bound.value, timedelta) else "%s::timestamptz"
    return f"{column} {sign} {moment}", [bound.value]


def _took(condition: Took) -> Q:
    took = f"coalesce(engine_instance.finished_at, statement_timestamp()) - ({BEGAN})"
    parts, values = list[str](), list[Any]()
    for bound, sign in ((condition.least, ">"), (condition.most, "<")):
        if bound is not None:
            parts.append(f"{took} {sign}{'=' if bound.is_inclusive else ''} %s")
            values.append(bound.value)
    return _raw(" AND ".join(parts) or "true", values)


def _either(conditions: Iterable[Q]) -> Q:
    return reduce(or_, conditions)


def _any(parts: Iterable[Sql]) -> Sql:
    found = list(parts)
    return (
        "(" + " OR ".join(f"({text})" for text, _ in found) + ")",
        [value for _, values in found for value in values],
    )


def _raw(text: str, values: list[Any]) -> Q:
    """Return a condition in SQL. Unknown is false, so that its negation is true."""
    return Q(RawSQL(f"coalesce(({text}), false)", values, output_field=BooleanField()))


_READERS: dict[type[Condition], Callable[[Any], Q]] = {
    Names: _names,
    Statuses: _statuses,
    Stored: lambda condition: Q(status__in=condition.statuses),
    Ids: ids_begin,
    Errors: _errors,
    FailedAlike: failed_alike,
    System: lambda condition: _of_system() if condition.is_system else ~_of_system(),
    Free: _free,
    Moments: _moments,
    Took: _took,
    AtPath: _at_path,
}
