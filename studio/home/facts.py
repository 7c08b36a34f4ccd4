"""What is true of some workflows, whoever asks, and what of it one person has started.

Both are read once until something changes, for every page and every tab that shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from django.db import connection

from engine.models import Worker
from engine.status import failures
from engine.status.facts import Servers
from engine.status.failures import CurrentGroup
from engine.status.gathering import database_now
from engine.status.holds import PausedWorkflow
from engine.status.servers import ALIVE, all_servers, servers_of
from studio.frame.unchanged import Unchanged
from studio.home import asking, failing, overdue, paused, stuck
from studio.home.details import with_details
from studio.home.group import Block
from studio.workflows.pauses import paused_of
from studio.workflows.table import FlowTable, flow_table

WORKFLOWS = 6
SETS, PEOPLE = 20, 200  # that are kept, at most

# The latest of each workflow, by the index that the failures of the last day have.
_LAST = """
SELECT max(last.finished_at) FROM unnest(%s::text[]) AS name(workflow)
 CROSS JOIN LATERAL (
       SELECT i.finished_at FROM engine_instance i WHERE i.workflow = name.workflow AND i.status = 'errored'
        ORDER BY i.finished_at DESC LIMIT 1) AS last
"""
# Most people have started nothing, or nothing of these.
_STARTED = """
SELECT EXISTS (SELECT FROM engine_instance
                WHERE started_by = %s AND started_by <> '' AND workflow = ANY (%s::text[]))
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is true of some workflows."""

    at: datetime
    living: tuple[Worker, ...]
    errors: tuple[CurrentGroup, ...]
    long: tuple[stuck.Long, ...]
    held: tuple[PausedWorkflow, ...]
    asked: tuple[asking.Row, ...]  # requests: the groups of these are made for each user
    blocks: tuple[Block, ...]  # all others that need attention; those that are shown have their details
    last_failure_at: datetime | None  # read only if nothing needs attention

    @property
    def servers(self) -> Servers:
        return all_servers(self.living)


_facts = Unchanged[Facts](most=SETS)
_flows = Unchanged[FlowTable](most=SETS)
_own = Unchanged[tuple[Block, ...]](most=PEOPLE)


def facts_of(names: Sequence[str]) -> Facts:
    """Return what is true of these workflows; for any number of instances, at most 22 queries read it."""
    return _facts.read(frozenset(names), lambda: _read(sorted(names)))


def flows_of(names: Sequence[str]) -> FlowTable:
    """Return the first rows of the table of these workflows."""
    return _flows.read(frozenset(names), lambda: flow_table(sorted(names), most=WORKFLOWS))


def started_by(person: str, facts: Facts, names: Sequence[str]) -> tuple[Block, ...]:
    """Return what needs attention and was started by this person."""
    if not person:
        return ()
    return _own.read((person, frozenset(names)), lambda: _read_own(person, facts, sorted(names)))


def _read(names: Sequence[str]) -> Facts:
    now = database_now()
    living = tuple(ALIVE.rows())
    errors = failures.current(names, now, lately=failing.GROWS)
    long = stuck.read_long(names)
    held = paused_of(names)
    unserved = stuck.read_unserved(_served(names, held, living), now)
    asked = asking.read(names)
    blocks = with_details(
        chain(
            failing.blocks(errors, now),
            paused.blocks(paused.read(names, now)),
            stuck.long_blocks(long, now),
            stuck.unserved_blocks(unserved, is_anybody=bool(all_servers(living).count)),
            overdue.blocks(overdue.read(names, now), now),
        ),
        now,
    )
    last = None if blocks or asked else _last_failure(names)
    return Facts(now, living, tuple(errors), tuple(long), tuple(held), tuple(asked), blocks, last)


def _read_own(person: str, facts: Facts, names: Sequence[str]) -> tuple[Block, ...]:
    if not _ask(_STARTED, person, [*names]):
        return ()
    now = facts.at
    errors = failures.started_by(person, facts.errors, names, now)
    long = [one for one in facts.long if one.started_by == person]
    unserved = stuck.read_unserved(_served(names, facts.held, facts.living), now, person=person)
    blocks = chain(
        failing.blocks(errors, now),
        paused.blocks(paused.read(names, now, person=person)),
        stuck.long_blocks(long, now),
        stuck.unserved_blocks(unserved, is_anybody=bool(facts.servers.count)),
    )
    return with_details(blocks, now, person=person)


def _served(
    names: Sequence[str], held: Iterable[PausedWorkflow], living: Sequence[Worker]
) -> dict[str, Servers]:
    """Return the workers of each workflow that is not paused: a pause holds what it holds."""
    return servers_of(sorted({*names} - {one.name for one in held}), living)


def _last_failure(names: Sequence[str]) -> datetime | None:
    at: datetime | None = _ask(_LAST, [*names])
    return at


def _ask(statement: str, *values: str | list[str]) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()[0]
