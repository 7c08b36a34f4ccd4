"""Rules that the tables must always satisfy, whatever crashed, as queries that find violations.

`manage.py verify` runs them on a live database. Constraints and triggers make some violations impossible. Their
queries exist anyway, for a database that was restored, repaired by hand, or lost a trigger.
"""

from __future__ import annotations

from engine.invariants import (
    bulk,
    counts,
    ends,
    events,
    failures,
    generations,
    instances,
    relations,
    reports,
    rollbacks,
    searching,
    steps,
)
from engine.invariants.invariant import OFFENDERS, Finding, Invariant, Offender, look

__all__ = ["INVARIANTS", "OFFENDERS", "UNCHECKABLE", "Finding", "Invariant", "Offender", "look"]

INVARIANTS: tuple[Invariant, ...] = (
    *steps.INVARIANTS,
    *ends.INVARIANTS,
    *rollbacks.INVARIANTS,
    *instances.INVARIANTS,
    *events.INVARIANTS,
    *relations.INVARIANTS,
    *generations.INVARIANTS,
    *reports.INVARIANTS,
    *searching.INVARIANTS,
    *failures.INVARIANTS,
    *counts.INVARIANTS,
    *bulk.INVARIANTS,
)

# What the tables cannot show, or only in part. Tests of the running system cover it.
UNCHECKABLE = {
    "I1": "no write of an earlier owner takes effect (only attempts record their worker)",
    "I3": "a body starts only after its attempt is committed",
    "I8": "every accepted event is stored",
    "I9": "no timer fires early (its time is cleared when it fires)",
    "I12": "every accepted start is stored",
    "I16": "every accepted action is in the audit trail, with the correct actor",
    "L1": "every instance finishes once failures stop",
}
