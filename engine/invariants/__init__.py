"""What must always hold in the tables, whatever died when: queries that find violations, so they find nothing.

`manage.py verify` asks them of a live database. Constraints and triggers make some violations impossible; their
queries are here all the same, for a database that was restored, repaired by hand, or lost a trigger.
"""

from __future__ import annotations

from engine.invariants import (
    audit,
    ends,
    events,
    generations,
    instances,
    notices,
    relations,
    rollbacks,
    steps,
)
from engine.invariants.invariant import OFFENDERS, Finding, Invariant, Offender, look

__all__ = ["INVARIANTS", "OFFENDERS", "UNTOLD", "Finding", "Invariant", "Offender", "look"]

INVARIANTS: tuple[Invariant, ...] = (
    *steps.INVARIANTS,
    *ends.INVARIANTS,
    *rollbacks.INVARIANTS,
    *instances.INVARIANTS,
    *events.INVARIANTS,
    *relations.INVARIANTS,
    *generations.INVARIANTS,
    *audit.INVARIANTS,
    *notices.INVARIANTS,
)

# What the tables do not tell, or not all of it: tests of the running system do.
UNTOLD = {
    "I1": "that no write of an earlier owner counts: rows do not say who wrote them, only attempts do",
    "I3": "that a body starts only after its attempt was committed",
    "I8": "that every event that was accepted is there",
    "I9": "that no timer fires early: the moment is cleared when it has come",
    "I12": "that every start that was accepted is there",
    "I16": "that every action that was accepted is in the audit trail, with the right actor",
    "L1": "that everything finishes once nothing fails any more",
}
