"""The JSON of groups of failures, in which commands and the HTTP API show them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from datetime import datetime
from typing import Any

from engine.status import documents
from engine.status.documents import Document
from engine.status.facts import StatusFacts
from engine.status.failures import within
from engine.status.failures.found import FailedAttempt, FailureGroup
from engine.status.failures.recovered import Recovered, recovered
from engine.status.failures.shares import shares
from engine.status.failures.told import told
from engine.status.failures.trend import Unit, trend
from engine.status.gathering import database_now, facts_by_key, without_values


def group(found: FailureGroup) -> Document:
    """Return a group. What is empty is null."""
    document = asdict(found)
    for key in ("step", "sample", "frame"):
        document[key] = document[key] or None
    return document


def details(found: FailureGroup, relatives: Collection[FailureGroup], *, full: bool) -> Document:
    """Return a group, the same error elsewhere, its newest failure, whether it recovered, and what was said of it."""
    return {
        "group": group(found),
        "elsewhere": [group(one) for one in relatives if one.fingerprint != found.fingerprint],
        "latest": _latest(within.sample_trace([found.fingerprint]), full=full),
        "recovered": _recovered(recovered([found.fingerprint])),
        "audit": [documents.action(row) for row in told([found.fingerprint])],
        "now": database_now(),
    }


def instances(
    fingerprint: str, which: str, *, limit: int, after: str | None, has_relatives: bool = True
) -> Document:
    """Return a page of the instances of a group, and how many there are of each kind.

    Without relatives, what is said about an instance names no instance of another workflow.
    """
    found = within.instances([fingerprint], which=which, limit=limit, after=after)
    rows = {row.key: row for row in _without_large_values().filter(key__in=found.keys)}
    page = [rows[key] for key in found.keys if key in rows]
    facts: dict[int, StatusFacts] = {**facts_by_key(page)}
    if not has_relatives:
        facts = {key: one.without_relatives() for key, one in facts.items()}
    return {
        "instances": [documents.listed(row, facts[row.key]) for row in page],
        "errored": found.errored,
        "retrying": found.retrying,
        "paused": found.paused,
        "went_on": found.went_on,
        "next_cursor": found.next,
        "now": facts[page[0].key].now if page else database_now(),
    }


def bars(fingerprint: str, unit: Unit) -> Document:
    """Return how often a group failed, the earliest first."""
    return {"trend": [_bar(at, number) for at, number in trend([fingerprint], unit=unit)]}


def common(fingerprint: str) -> Document:
    """Return what the failing instances of a group have in common."""
    return {"shares": [asdict(one) for one in shares([fingerprint])]}


def _bar(at: datetime, number: int) -> Document:
    return {"at": at, "failures": number}


def _latest(found: FailedAttempt | None, *, full: bool) -> Document | None:
    if found is None:
        return None
    return {
        "workflow": found.workflow,
        "id": found.instance_id,
        "generation": found.generation,
        "step": found.step_seq,
        "phase": found.phase,
        "attempt": found.attempt,
        "max_attempts": found.max_attempts,
        "failed_at": found.failed_at,
        "error": documents.error(found.error, full=full),
    }


def _recovered(found: Recovered | None) -> Document | None:
    return None if found is None else {"count": found.count, "since": found.since}


def _without_large_values() -> Any:
    return without_values().defer(None).defer("params", "output", "error", "pause_reason")
