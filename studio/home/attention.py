"""What needs attention, of everything and of one user: groups in the order of severity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from django.db import connection
from django.urls import reverse

from engine.status.facts import Servers
from engine.status.failures import current
from engine.status.gathering import database_now
from engine.status.servers import ALIVE, all_servers, servers_of
from studio.home import asking, failing, overdue, paused, stuck
from studio.home.details import with_actions, with_details
from studio.home.group import Block, Group, cut, sort
from studio.instances.address import address_of
from studio.workflows.pauses import paused_of

WHO = ("", "mine")

# The latest of each workflow, by the index that the failures of the last day have.
_LAST = """
SELECT max(last.finished_at) FROM unnest(%s::text[]) AS name(workflow)
 CROSS JOIN LATERAL (
       SELECT i.finished_at FROM engine_instance i WHERE i.workflow = name.workflow AND i.status = 'errored'
        ORDER BY i.finished_at DESC LIMIT 1) AS last
"""


@dataclass(frozen=True, slots=True)
class More:
    """Groups that have no row, and the page that has them."""

    count: int
    words: str
    address: str


@dataclass(frozen=True, slots=True)
class Attention:
    """What needs attention. The sentence is about everything, the rows are those that were asked for."""

    everything: tuple[Group, ...]
    own_count: int
    shown: tuple[Group, ...]
    more: tuple[More, ...]
    servers: Servers
    last_failure_at: datetime | None  # read only if nothing needs attention


def home_address(who: str) -> str:
    """Return the address of the page, of everything or of one's own."""
    return f"{reverse('studio:home')}{f'?who={who}' if who else ''}"


def attention(names: Sequence[str], user: Any, who: str = "") -> Attention:
    """Read what needs attention in these workflows, for any number of instances with at most 26 queries."""
    now = database_now()
    living = ALIVE.rows()
    person = user.get_username() if hasattr(user, "get_username") else ""
    errors = current(names, now, person=person)
    pauses = paused.read(names, person, now)
    long = stuck.read_long(names, person)
    held = paused_of(names)
    served = servers_of(sorted({*names} - {one.name for one in held}), living)  # a pause holds what it holds
    unserved = stuck.read_unserved(served, person, now)
    late = overdue.read(names, now)
    questions = asking.read(names, user)
    servers = all_servers(living)

    def groups(*, own: bool) -> list[Group]:
        blocks: chain[Block] = chain(
            failing.blocks(errors, now, own=own),
            paused.blocks(pauses, own=own),
            stuck.long_blocks(long, now, own=own),
            stuck.unserved_blocks(unserved, is_anybody=bool(servers.count), own=own),
            () if own else overdue.blocks(late, now),
            asking.blocks(questions, now, own=own),
        )
        return sort(blocks)

    everything, mine = groups(own=False), groups(own=True)
    some, others = cut(mine if who == "mine" else everything)
    own = person if who == "mine" else ""
    shown = with_actions(with_details(some, now), held, user, home_address(who), own=own)
    return Attention(
        everything=tuple(everything),
        own_count=len(mine),
        shown=tuple(shown),
        more=tuple(_more(others)),
        servers=servers,
        last_failure_at=None if everything else _last_failure(names),
    )


_LISTS = {
    "errored": ("group", "studio:errors", ""),
    "paused": ("paused group", "", "status:paused"),
    "stuck": ("slow step", "", "status:running"),
    "approval": ("question", "studio:approvals", ""),
}


def _more(others: Sequence[Group]) -> list[More]:
    counts: dict[str, int] = {}
    for group in others:
        kind = "errored" if group.kind in ("rollback", "errored", "retrying") else group.kind
        counts[kind] = counts.get(kind, 0) + 1
    found = []
    for kind, count in counts.items():
        one, name, query = _LISTS[kind]
        words = f"{count:,} more {one}{'' if count == 1 else 's'}"
        found.append(More(count, words, reverse(name) if name else address_of({"query": query})))
    return found


def _last_failure(names: Sequence[str]) -> datetime | None:
    with connection.cursor() as cursor:
        cursor.execute(_LAST, [[*names]])
        (found,) = cursor.fetchone()
    at: datetime | None = found
    return at
