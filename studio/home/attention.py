"""What needs attention, of everything and of one user: groups in the order of severity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse

from engine.status.facts import Servers
from studio.home import asking
from studio.home.actions import with_actions
from studio.home.facts import facts_of, started_by
from studio.home.group import Entry, Group, cut, sort
from studio.instances.address import address_of

WHO = ("", "mine")


@dataclass(frozen=True, slots=True)
class More:
    """Groups that have no row, and the page that has them."""

    count: int
    words: str
    address: str


@dataclass(frozen=True, slots=True)
class Attention:
    """What needs attention. The sentence is about everything, the rows are those that were asked for."""

    everything: tuple[Group | Entry, ...]
    own_count: int
    shown: tuple[Group, ...]
    more: tuple[More, ...]
    servers: Servers
    last_failure_at: datetime | None


def home_address(who: str) -> str:
    """Return the address of the page, of everything or of one's own."""
    return f"{reverse('studio:home')}{f'?who={who}' if who else ''}"


def attention(names: Sequence[str], user: Any, who: str = "") -> Attention:
    """Return what needs attention in these workflows: read once for all who may see them, and for each person apart."""
    person = user.get_username() if hasattr(user, "get_username") else ""
    facts = facts_of(names)
    own = started_by(person, facts, names)
    asked = asking.put_to(user, facts.asked)
    everything = sort((*facts.blocks, *asking.blocks(asked, facts.at)))
    mine = sort((*own, *asking.blocks(asked, facts.at, own=True)))
    some, others = cut(mine if who == "mine" else everything)
    rows = [one for one in some if isinstance(one, Group)]  # with_details has made them
    shown = with_actions(rows, facts.held, user, home_address(who), own=person if who == "mine" else "")
    return Attention(
        everything=tuple(everything),
        own_count=len(mine),
        shown=tuple(shown),
        more=tuple(_more(others)),
        servers=facts.servers,
        last_failure_at=facts.last_failure_at,
    )


_LISTS = {
    "errored": ("group", "studio:errors", ""),
    "paused": ("paused group", "", "status:paused"),
    "stuck": ("slow step", "", "status:running"),
    "approval": ("question", "studio:approvals", ""),
}


def _more(others: Sequence[Group | Entry]) -> list[More]:
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
