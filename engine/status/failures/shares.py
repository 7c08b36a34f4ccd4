"""What the instances of groups of failures have in common that others of their workflows have not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from django.db import connection

from engine.models import Failure, Instance
from engine.status.search import first_key
from engine.values.serialization import decode
from engine.values.serialization.envelope import is_envelope

MOST = 1_000  # instances on each side
SHOWN = 8
DEEPEST = 3
MOST_VALUES = 100  # of an instance
LONGEST = 100  # characters of a value
SHORT = 1_000  # characters of params whose values are kept
BEFORE = timedelta(days=7)
# A share is told if it covers half of the failing instances, at least two, and so much more than is usual.
LEAST, LEAST_MORE, LEAST_COUNT = 0.5, 0.2, 2

# By the index of the fingerprints, the latest ends first. Large params are left out: they take too long to read.
_VALUES = "CASE WHEN pg_column_size(i.params) <= 4096 THEN i.params::text END, i.tags, i.code"
_FAILING = f"""
    SELECT {_VALUES}
    FROM unnest(%(fingerprints)s::text[]) AS f (fingerprint)
    CROSS JOIN LATERAL (
        (SELECT params, tags, code FROM engine_instance
         WHERE fingerprint = f.fingerprint AND status = 'errored' ORDER BY finished_at DESC LIMIT %(most)s)
        UNION ALL
        (SELECT params, tags, code FROM engine_instance
         WHERE fingerprint = f.fingerprint AND status = 'waiting' AND waiting_for = 'retry' LIMIT %(most)s)
    ) AS i
    LIMIT %(most)s
"""  # noqa: S608
# By the index of the lists: the newest of each workflow and status.
_USUAL = f"""
    WITH found AS MATERIALIZED (
        SELECT i.key FROM unnest(%(workflows)s::text[]) AS w (workflow)
        CROSS JOIN unnest(%(statuses)s::text[]) AS s (status)
        CROSS JOIN LATERAL (
            SELECT key, fingerprint FROM engine_instance
            WHERE workflow = w.workflow AND status = s.status AND key >= %(low)s AND key < %(top)s
            ORDER BY key DESC LIMIT %(most)s
        ) AS i
        WHERE i.fingerprint IS NULL OR i.fingerprint <> ALL (%(fingerprints)s)
        ORDER BY i.key DESC LIMIT %(most)s
    )
    SELECT {_VALUES} FROM found JOIN engine_instance i USING (key)
"""  # noqa: S608
_EVERY = ("queued", "running", "waiting", "waiting_for_pause", "paused", "complete", "errored", "terminated")


@dataclass(frozen=True, slots=True)
class Share:
    """A value that many of the failing instances have: 46 of 50 have `params.region` eu, usually 30 of 100."""

    what: str
    """params.PATH, tag, or code: the fingerprint of the handler."""
    value: str
    """A text as it is, another value as JSON."""
    count: int
    of: int
    usual_count: int
    """The same among instances of the same workflows begun in the seven days before the first failure."""
    usual_of: int
    """0 if there are none to compare with."""


def shares(fingerprints: Collection[str], *, most: int = MOST) -> list[Share]:
    """Return what stands out in the instances that fail now, what is the least usual first.

    At most 1,000 of them, or `most`, are compared with as many others. Secrets are left out. Without instances from
    before the first failure, those are the usual ones that are complete, and without those all others. Without any,
    what differs among the failing ones is first, and the code last: all that were ever started may have the rest.
    """
    failing = _rows(_FAILING, fingerprints=[*fingerprints], most=most)
    if len(failing) < LEAST_COUNT:
        return []
    usual = _usual(fingerprints, most)
    return _found(_counted(failing), len(failing), _counted(usual), len(usual))


def _found(
    counts: Counter[tuple[str, str]], of: int, usual: Counter[tuple[str, str]], usual_of: int
) -> list[Share]:
    found = list[tuple[bool, float, Share]]()
    for (what, value), count in counts.items():
        share = Share(what, value, count, of, usual[what, value], usual_of)
        more = count / of - (share.usual_count / usual_of if usual_of else 0)
        if count >= LEAST_COUNT and count / of >= LEAST and more >= LEAST_MORE:
            is_constant = not usual_of and count == of
            found.append((is_constant, -more, share))
    found.sort(key=lambda one: (*one[:2], one[2].what == "code", one[2].what, one[2].value))
    return [share for *_, share in found[:SHOWN]]


def _usual(fingerprints: Collection[str], most: int) -> list[Sequence[Any]]:
    groups = Failure.objects.filter(fingerprint__in=fingerprints).values_list("workflow", "first_seen")
    found = list(groups)
    if not found:
        return []
    workflows, first = sorted({workflow for workflow, _ in found}), min(at for _, at in found)
    low, top = (first_key(Instance, "created_at", at) for at in (first - BEFORE, first))
    about = {"workflows": workflows, "fingerprints": [*fingerprints], "most": most}
    return (
        _rows(_USUAL, **about, statuses=[*_EVERY], low=low, top=top)
        or _rows(_USUAL, **about, statuses=["complete"], low=top, top=2**62)
        or _rows(_USUAL, **about, statuses=[*_EVERY], low=top, top=2**62)
    )


def _rows(statement: str, **values: Any) -> list[Sequence[Any]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _counted(rows: Sequence[Sequence[Any]]) -> Counter[tuple[str, str]]:
    counts = Counter[tuple[str, str]]()
    for params, tags, code in rows:
        counts.update(values_of(params, tags, code))
    return counts


def values_of(params: str | None, tags: Collection[str], code: str | None) -> frozenset[tuple[str, str]]:
    """Return what an instance can have in common with others: values of its params by path, its tags, its code."""
    is_short = len(params or "") <= SHORT
    return (_kept_values if is_short else _values_of)(params, (*tags,), code)


def _values_of(params: str | None, tags: tuple[str, ...], code: str | None) -> frozenset[tuple[str, str]]:
    values = set() if params is None else {*_first(_scalars("params", decode(params), DEEPEST))}
    values |= {("tag", tag) for tag in tags}
    if code:
        values.add(("code", code))
    return frozenset(values)


# They follow from the text alone, and the same instances are compared again with each change.
_kept_values = lru_cache(maxsize=2_000)(_values_of)


def _first(values: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for _, one in zip(range(MOST_VALUES), values, strict=False):
        yield one


def _scalars(path: str, value: object, depth: int) -> Iterator[tuple[str, str]]:
    """Yield texts, numbers, booleans and nulls, each with its path. A secret is an object of its own form."""
    if isinstance(value, dict):
        if depth and not is_envelope(value):
            for key, inner in value.items():
                yield from _scalars(f"{path}.{key}", inner, depth - 1)
    elif isinstance(value, str):
        if len(value) <= LONGEST:
            yield path, value
    elif value is None or isinstance(value, bool | int | float):
        yield path, json.dumps(value)
