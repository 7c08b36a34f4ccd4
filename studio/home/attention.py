"""What needs attention: counts over all instances, and a few instances of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from django.db import connection
from django.db.models import F
from django.urls import reverse

from engine.models import Instance
from engine.status.gathering import without_values
from engine.steer.requests import open_requests
from studio.display.at_least import counted
from studio.instances.address import list_address

CAP = 1_001  # instances of a workflow and kind, and requests
SHOWN = 12

# Each has its own index, see the model. `now()`, since an index cannot use another clock.
_WHERE = {
    "paused": "i.status = 'paused' AND i.pause_reason IS NOT NULL",
    "retrying": "i.status = 'waiting' AND i.waiting_for = 'retry'",
    "failed": "i.status = 'errored' AND i.finished_at > now() - interval '1 day'",
}
_ORDER = {"paused": "i.key DESC", "retrying": "i.key DESC", "failed": "i.finished_at DESC"}

_COUNT = """
SELECT '{kind}', name.workflow, counted.n
  FROM unnest(%(names)s::text[]) AS name(workflow)
 CROSS JOIN LATERAL (
       SELECT count(*) AS n
         FROM (SELECT FROM engine_instance i WHERE i.workflow = name.workflow AND {where} LIMIT %(cap)s) AS capped
       ) AS counted
 WHERE counted.n > 0
"""
_NEWEST = """
(SELECT '{kind}', newest.key
   FROM unnest(%(names)s::text[]) AS name(workflow)
  CROSS JOIN LATERAL (
        SELECT i.key, i.finished_at FROM engine_instance i WHERE i.workflow = name.workflow AND {where}
         ORDER BY {order} LIMIT %(shown)s) AS newest
  ORDER BY newest.finished_at DESC, newest.key DESC LIMIT %(shown)s)
"""


def _for_each_kind(query: str) -> str:
    queries = (query.format(kind=kind, where=where, order=_ORDER[kind]) for kind, where in _WHERE.items())
    return "UNION ALL".join(queries)


_COUNTS, _ROWS = _for_each_kind(_COUNT), _for_each_kind(_NEWEST)


@dataclass(frozen=True, slots=True)
class Kind:
    """A reason to look at instances: how many there are, and the page that lists them.

    That list has more: it includes what users paused, and what failed earlier.
    """

    words: str
    look: str  # the status that gives its color and icon
    count: int
    address: str
    workflows: int = 0  # how many workflows they belong to
    is_cut: bool = False  # there are more than in `Attention.instances`


@dataclass(frozen=True, slots=True)
class Attention:
    """What needs attention, the most urgent kind first."""

    paused: Kind
    asking: Kind
    retrying: Kind
    failed: Kind
    instances: tuple[Instance, ...]

    @property
    def kinds(self) -> list[Kind]:
        return [kind for kind in (self.paused, self.asking, self.retrying, self.failed) if kind.count]

    @property
    def cut(self) -> list[Kind]:
        return [kind for kind in self.kinds if kind.is_cut]


def attention(names: Sequence[str]) -> Attention:
    """Read what needs attention in these workflows, with four queries."""
    counts, keys = _counts(names), _keys(names)
    chosen = _chosen(keys)
    asking = counted(len(keys["asking"]), CAP)

    def is_cut(name: str, count: int) -> bool:
        return count > sum(key in chosen for key in keys[name])

    def kind(name: str, words: str, look: str) -> Kind:
        of = counts.get(name, {})
        count = sum(of.values())
        return Kind(words, look, count, list_address(status=look), len(of), is_cut(name, count))

    return Attention(
        paused=kind("paused", "paused by the engine", "paused"),
        asking=Kind(
            "waiting for approval",
            "approval",
            asking,
            f"{reverse('studio:approvals')}?box=open",
            is_cut=is_cut("asking", asking),
        ),
        retrying=kind("retrying", "retrying", "retrying"),
        failed=kind("failed", "failed in the last 24 h", "errored"),
        instances=tuple(_instances(chosen)),
    )


def _counts(names: Sequence[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for kind, workflow, n in _ask(_COUNTS, names):
        found.setdefault(kind, {})[workflow] = counted(n, CAP)
    return found


def _keys(names: Sequence[str]) -> dict[str, list[int]]:
    """Read the newest keys of each kind. Requests give the keys of their instances, the next to expire first."""
    keys: dict[str, list[int]] = {kind: [] for kind in ("paused", "asking", "retrying", "failed")}
    for kind, key in _ask(_ROWS, names):
        keys[kind].append(key)
    soonest = open_requests().order_by(F("expires_at").asc(nulls_last=True), "opened_at")
    keys["asking"] = list(soonest.values_list("instance_id", flat=True)[:CAP])
    return keys


def _chosen(keys: Mapping[str, Sequence[int]]) -> list[int]:
    """Choose some of each kind, so that no kind crowds out another. An instance may be in two kinds, or ask twice."""
    kinds = [list(dict.fromkeys(some)) for some in keys.values()]
    return list(dict.fromkeys(key for some in share(kinds, SHOWN) for key in some))


def _instances(keys: Sequence[int]) -> list[Instance]:
    found = {row.key: row for row in without_values().filter(key__in=keys)}
    return [found[key] for key in keys if key in found]


def share(kinds: Sequence[Sequence[int]], most: int) -> list[list[int]]:
    """Take `most` in all, one of each kind in turn."""
    taken: list[list[int]] = [[] for _ in kinds]
    for turn in zip_longest(*kinds):
        for of, one in zip(taken, turn, strict=True):
            if one is not None and sum(map(len, taken)) < most:
                of.append(one)
    return taken


def _ask(query: str, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    values: dict[str, Any] = {
        "names": list(names),
        "cap": CAP,
        "shown": SHOWN,
    }
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        yield from cursor.fetchall()
