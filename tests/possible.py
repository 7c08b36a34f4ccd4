"""Whether rows that a test has planted are possible: they are checked against the engine's invariants."""

from __future__ import annotations

import pytest

from engine.invariants import INVARIANTS, Invariant
from engine.worker.capacity import LIGHT_FACTOR
from tests.violations import offenders

# What workers do in time. Where rows are planted, there is no worker.
BY_WORKERS = {"nothing-is-overdue", "leases-are-swept", "no-orphans", "ends-are-reported", "notices-are-sent"}
# What a cluster and its shifts say of themselves. A test with real processes checks these sentences.
WORKERS = (
    Invariant(
        "",
        "workers-are-shifts-or-clusters",
        "A row is of a cluster, which holds nothing itself, or of a shift, which holds at most eight times its slots.",
        f"""
        SELECT key, format('%%s with %%s of %%s slots', role, held, slots) FROM engine_worker
        WHERE CASE role WHEN 'cluster' THEN held <> 0 WHEN 'shift' THEN held NOT BETWEEN 0 AND {LIGHT_FACTOR} * slots
              ELSE true END
           OR slots < 1
        """,
    ),
    Invariant(
        "",
        "workers-have-a-process",
        "A row names the host and the process.",
        "SELECT key, name FROM engine_worker WHERE name !~ '^[^:]+:[1-9][0-9]*$'",
    ),
    Invariant(
        "",
        "workers-serve-something",
        "A row names each workflow that is served once.",
        """
        SELECT key, array_to_string(workflows, ' ') FROM engine_worker
        WHERE cardinality(workflows) = 0
           OR cardinality(workflows) <> (SELECT count(DISTINCT name) FROM unnest(workflows) AS name)
        """,
    ),
    Invariant(
        "",
        "workers-are-seen-after-their-start",
        "A row says when the process began, and since then when it was seen last.",
        "SELECT key, format('%%s, seen %%s', started_at, seen_at) FROM engine_worker WHERE seen_at < started_at",
    ),
)
DATABASE = {"db", "transactional_db"}


def uses_database(request: pytest.FixtureRequest) -> bool:
    """Return whether a test can plant anything."""
    return request.node.get_closest_marker("django_db") is not None or bool(
        DATABASE & {*request.fixturenames}
    )


def impossible() -> list[str]:
    """Return a sentence for each row that the engine never writes."""
    asked = [one for one in (*INVARIANTS, *WORKERS) if one.name not in BY_WORKERS]
    return offenders("impossible", asked)
