"""The headline: the worst thing, how many, and since when; and one fact with a link for each other. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from engine.status.facts import Servers
from engine.status.sentences.sentence import Code, Moment, Sentence
from studio.home.attention import Attention
from studio.home.group import OF_ERRORS, Entry, Group
from studio.instances.address import address_of
from studio.workers.headline import many, number


@dataclass(frozen=True, slots=True)
class Fact:
    """A further fact: some words, a link, and more words."""

    before: str
    subject: str
    after: Sentence
    address: str


@dataclass(frozen=True, slots=True)
class Headline:
    """The sentence. `look` is the status that gives its color."""

    sentence: Sentence
    look: str
    facts: tuple[Fact, ...] = ()


def headline(found: Attention | None, *, has_workflows: bool = True) -> Headline:
    """Return the headline. What could not be read is None."""
    if found is None:
        return Headline(("What needs you could not be read.",), "retrying")
    facts = (*_facts(found), _workers(found.servers))
    worst = next(iter(found.everything), None)
    if isinstance(worst, Group):  # the worst has a row
        look = "retrying" if worst.kind in ("unserved", "stuck") else worst.look
        return Headline((*_worst(worst), "."), look, facts)
    if not has_workflows:
        return Headline(("Write your first workflow.",), "complete", facts)
    return _quiet(found, facts)


def _quiet(found: Attention, facts: tuple[Fact, ...]) -> Headline:
    last: Sentence = ()
    if found.last_failure_at is not None:
        last = (" Last failure ", Moment("ago", found.last_failure_at), ".")
    if not (found.servers.count or found.servers.is_starting):
        return Headline(
            ("Nothing needs you, but no worker is running, so no workflow runs.",), "retrying", facts
        )
    return Headline(("Nothing needs you.", *last), "complete", facts)


def _worst(group: Group) -> Sentence:
    what, is_one = _instances(group), group.count == 1
    has, since = "has" if is_one else "have", _since(group.since)
    if group.kind == "rollback":
        return (what, " could not be rolled back", *(_at(group.since) if is_one else since))
    if group.kind == "errored" and is_one and group.step:
        return (what, " failed in ", Code(group.step), *_at(group.since))
    if group.kind == "errored":
        return (what, f" {has} failed", " in one step" if group.step else " with one error", *since)
    if group.kind == "retrying":
        return (what, f" {'backs' if is_one else 'back'} off", *since)
    if group.kind == "paused":
        return (what, f" {has} been paused by the engine", *since)
    if group.kind == "stuck":
        return (what, f" {has} been in one step for far longer than usual", *since)
    if group.kind == "unserved":
        return (group.title, f", and {many(group.count, 'instance')} {has} waited", *since)
    if group.kind == "overdue":
        return (many(group.count, "schedule"), f" {has} been overdue", *since)
    return (many(group.count, "request"), f" {has} waited for an answer", *since)


def _instances(group: Group) -> str:
    of = f"{len(group.shares)} workflows" if len(group.shares) > 1 else group.shares[0].workflow
    return f"{many(group.count, 'instance')} of {of}"


def _at(moment: datetime | None) -> Sentence:
    return (" at ", Moment("minute", moment)) if moment else ()


def _since(moment: datetime | None) -> Sentence:
    return (" since ", Moment("minute", moment)) if moment else ()


def _facts(found: Attention) -> Iterator[Fact]:
    """Yield what else needs attention, in the order of severity. What is zero is left out."""
    worst, *others = found.everything or (None,)
    kinds: dict[str, list[Group | Entry]] = {}
    for group in others:
        if group is not None:
            kinds.setdefault(group.kind, []).append(group)
    is_more = worst is not None and worst.kind in OF_ERRORS
    for kind, groups in kinds.items():
        yield _fact(kind, groups, is_more=is_more)


def _fact(kind: str, groups: Sequence[Group | Entry], *, is_more: bool) -> Fact:
    count = sum(group.count for group in groups)
    is_one, n = count == 1, number(count)
    only = groups[0].address if len(groups) == 1 else ""
    are = "is" if is_one else "are"
    if kind == "rollback":
        return Fact("", n, (" could not be rolled back",), only or reverse("studio:errors"))
    if kind == "errored":
        reasons = "another reason" if len(groups) == 1 else f"{len(groups)} other reasons"
        return Fact("", n, (f" failed for {reasons}",), only or reverse("studio:errors"))
    if kind == "retrying":
        return _back_off(groups, f"{n} more" if is_more else n, is_one=is_one, only=only)
    if kind == "paused":
        return Fact("", n, (f" {are} paused by the engine",), only or address_of({"query": "status:paused"}))
    if kind == "stuck":
        running = address_of({"query": "status:running"})
        return Fact("", n, (f" run{'s' if is_one else ''} far longer than usual",), only or running)
    if kind == "unserved":
        return Fact("", n, (f" wait{'s' if is_one else ''} without a worker",), groups[0].address)
    if kind == "overdue":
        return Fact("", n, (f" schedule{' is' if is_one else 's are'} overdue",), groups[0].address)
    return _asking(groups, n, is_one=is_one)


def _back_off(groups: Sequence[Group | Entry], subject: str, *, is_one: bool, only: str) -> Fact:
    next_at = min((group.next_at for group in groups if group.next_at), default=None)
    until: Sentence = (
        () if next_at is None else (" until " if is_one else ", the first until ", Moment("minute", next_at))
    )
    return Fact(
        "",
        subject,
        (" backs off" if is_one else " back off", *until),
        only or address_of({"query": "status:retrying"}),
    )


def _asking(groups: Sequence[Group | Entry], n: str, *, is_one: bool) -> Fact:
    own = sum(group.own_count for group in groups)
    is_all = own == sum(group.count for group in groups)
    who = " for you" if is_all else f", {own:,} for you" if own else " for others"
    address = f"{reverse('studio:approvals')}?box={'mine' if is_all else 'open'}"
    return Fact("", n, (f" request{' waits' if is_one else 's wait'}{who}",), address)


def _workers(servers: Servers) -> Fact:
    address = reverse("studio:workers")
    if servers.is_starting:
        return Fact("", "workers", (" are starting",), address)
    if not servers.count:
        return Fact("", "no worker", (" is running",), address)
    if servers.count == 1:
        return Fact("the only ", "worker", (" is up",), address)
    return Fact("all ", many(servers.count, "worker"), (" are up",), address)
