"""What people said and decided about groups of failures."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta

from engine.models import Audit

MOST = 50
_READ = 10  # rows for each one that is returned, at most
_TOGETHER = timedelta(seconds=2)  # rows of one transaction, each about another group


def told(fingerprints: Collection[str], *, limit: int = MOST) -> list[Audit]:
    """Return notes on these groups and decisions about them as rows of the audit trail, the newest first.

    What was said of several of them at once is returned once. Denied attempts are left out.
    """
    limit = max(1, min(limit, MOST))
    rows = Audit.objects.about_errors(fingerprints).filter(outcome="done").order_by("-key")
    return _once(rows[: limit * min(len(fingerprints), _READ)])[:limit]


def _once(rows: Iterable[Audit]) -> list[Audit]:
    found: list[Audit] = []
    about: set[object] = set()  # the groups of the last one
    for row in rows:
        group = row.data.get("error") if isinstance(row.data, dict) else None
        if found and group not in about and _is_same(row, found[-1]):
            about.add(group)
        else:
            found.append(row)
            about = {group}
    return found


def _is_same(row: Audit, other: Audit) -> bool:
    said = (row.verb, row.actor, row.reason) == (other.verb, other.actor, other.reason)
    return said and abs(row.at - other.at) < _TOGETHER
