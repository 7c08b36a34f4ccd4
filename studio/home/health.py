"""The health sentence: what needs attention, and whether workers run."""

from __future__ import annotations

from dataclasses import dataclass

from engine.status.facts import Servers
from engine.status.sentences.status_line import busy
from studio.home.attention import Attention


@dataclass(frozen=True, slots=True)
class Phrase:
    """A part of the sentence, with a link to details."""

    text: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """The sentence. `look` is the status that gives its color."""

    phrases: tuple[Phrase, ...]
    look: str


def health(found: Attention, servers: Servers) -> Health:
    """Return the health sentence."""
    needs = list(_needs(found))
    first, *others = [*(needs or [Phrase("Nothing needs you")]), Phrase(_workers(servers))]
    capital = Phrase(first.text[:1].upper() + first.text[1:], first.address)
    return Health((capital, *others), _look(found, servers))


def _needs(found: Attention) -> list[Phrase]:
    failing = f"{_many(found.failed.workflows, 'workflow')} had failures in the last 24 h"
    said = [
        (found.failed, failing),
        (found.asking, f"{_many(found.asking.count, 'approval')} waiting"),
        (found.paused, f"{_number(found.paused.count)} paused by the engine"),
        (found.retrying, f"{_number(found.retrying.count)} retrying"),
    ]
    return [Phrase(text, kind.address) for kind, text in said if kind.count]


def _workers(servers: Servers) -> str:
    if servers.is_starting:
        return "workers are starting"
    if not servers.count:
        return "no worker is running, so no workflow runs"
    return f"{_many(servers.count, 'worker')} OK, {busy(servers)}"


def _look(found: Attention, servers: Servers) -> str:
    if found.failed.count or found.paused.count:
        return "errored"
    return "retrying" if found.retrying.count or not servers.count else "complete"


def _many(count: int, one: str) -> str:
    return f"{_number(count)} {one}{'' if count == 1 else 's'}"


def _number(count: int) -> str:
    return f"{count:,}" if type(count) is int else str(count)
