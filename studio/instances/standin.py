"""Stand-in, deleted when the searcher is merged."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from engine.models import Instance
from engine.status.gathering import without_values
from engine.values.query.terms import *
from engine.values.shown import stored

SORTS = ("-started", "started", "-finished", "finished", "-duration", "duration")


@dataclass(frozen=True, slots=True)
class Found:
    instances: list
    newer: str = ""
    older: str = ""
    top: int = 0
    said: str = "Found by index over all instances"


def _rows(query, names=None):
    rows = without_values()
    for term in query.terms:
        c = term.condition
        q = Q()
        match c:
            case Names(field="workflow"):
                q = Q(workflow__in=[p.text for p in c.patterns])
            case Statuses():
                q = Q(pk__in=[])
                for n in c.names:
                    for s, w in stored(n):
                        q |= Q(status=s) if w is None else Q(status=s, waiting_for=w)
            case Ids():
                q = Q(id__istartswith=c.beginnings[0])
            case Free():
                q = Q(id__istartswith=c.text)
        rows = rows.exclude(q) if term.is_negated else rows.filter(q)
    return rows


def search(query, names=None, sort="-started", before="", after="", page=50):
    rows = _rows(query)
    if before:
        rows = rows.filter(key__lt=int(before))
    got = list(rows.order_by("-key")[: page + 1])
    newest = Instance.objects.order_by("-key").values_list("key", flat=True).first() or 0
    return Found(
        got[:page],
        older=str(got[page - 1].key) if len(got) > page else "",
        newer=str(got[0].key) if before and got else "",
        top=got[0].key if got else newest,
    )
