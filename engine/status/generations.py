"""The generations of an instance: as an earlier one left it, how each began and ended, and what was done to it."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from engine.models import Audit, Generation, Instance
from engine.models.instance import FINAL
from engine.states import Action
from engine.status import status_line
from engine.status.bidi import isolated
from engine.status.facts import Deed, Situation
from engine.status.gathering import situation_of
from engine.status.status_line import Code, Moment, Part, Sentence, quoted

SHOWN = 50  # of the earlier ones, the newest
TRAIL_READ = 1_000
# What the row of a generation says of it. Whatever else an instance has is of the present one.
KEPT = ("status", "output", "error", "rollback", "unreached", "code", "started_at", "finished_at")


@dataclass(frozen=True, slots=True)
class Restart:
    """What began a generation."""

    actor: str
    at: datetime
    reason: str
    from_step: str
    kept: int
    before: str  # how it found the instance

    @property
    def said(self) -> Sentence:
        """Say it in one sentence."""
        where: Sentence = (" from step ", Code(self.from_step)) if self.from_step else (" from the start",)
        kept = f"{self.kept} step{'' if self.kept == 1 else 's'} kept" if self.from_step else ""
        parts: list[Part] = [
            f"Restarted by {isolated(self.actor) or 'a program'} ",
            Moment("ago", self.at),
            *where,
        ]
        parts += [f" ({kept})"] if kept else []
        return (*parts, f": {quoted(self.reason)}" if self.reason else ".")


@dataclass(frozen=True, slots=True)
class Generations:
    """Those of an instance; `shown` is the number of the one that is asked for."""

    shown: int
    newest: int
    earlier: tuple[Generation, ...] = ()  # the newest first
    began: Restart | None = None  # the one that is shown
    ended: Restart | None = None  # by which an earlier one was followed
    terminated: Deed | None = None

    @property
    def is_past(self) -> bool:
        return self.shown != self.newest

    @property
    def is_cut(self) -> bool:
        return len(self.earlier) < self.newest - 1

    @property
    def cut_short_by(self) -> Restart | None:
        """Tell what ended it, where it was open when the next one began."""
        return self.ended if self.ended is not None and self.ended.before not in FINAL else None


FIRST = Generations(1, 1)


def generations_of(instance: Instance, shown: int | None = None) -> Generations:
    """Read them, with two queries where there are several. `shown` is by default the newest; it need not exist."""
    newest = instance.generation
    shown = newest if shown is None else shown
    if shown == newest == 1:
        return FIRST
    rows = Generation.objects.filter(instance_id=instance.key).only("number", "status", "finished_at")
    trail = Audit.objects.filter(
        instance_key=instance.key, outcome="done", verb__in=[Action.RESTART, Action.TERMINATE]
    )
    deeds = list(trail.order_by("-key")[:TRAIL_READ])
    restarts = {number: deed for deed in deeds if (number := _begun_by(deed)) is not None}
    return Generations(
        shown,
        newest,
        tuple(rows.order_by("-number")[:SHOWN]),
        _restart(restarts.get(shown)),
        _restart(restarts.get(shown + 1)),
        _terminated(deeds, restarts.get(shown), restarts.get(shown + 1)),
    )


def as_it_was(instance: Any, kept: Generation) -> Any:
    """Return the instance as an earlier generation left it, to be shown only."""
    past = copy.copy(instance)
    past.generation = kept.number
    for name in KEPT:
        if name not in kept.get_deferred_fields():
            setattr(past, name, getattr(kept, name))
    past.waiting_for = past.ends_as = ""
    past.wake_at = past.paused_at = past.deadline_at = past.owner = None
    past.isolated = past.owes = False
    return past


def situation(instance: Instance, those: Generations) -> Situation:
    """Gather all that is to be known of the generation that is shown; `instance` is as that one left it."""
    facts = situation_of(instance)
    if not those.is_past:
        return facts
    return replace(facts, began_at=began_at(instance, those), deed=those.terminated)


def began_at(instance: Instance, those: Generations) -> datetime:
    """Return when the generation that is shown began; one that keeps steps has the start of the one that ran them."""
    if those.began is not None:
        return those.began.at
    return instance.started_at or instance.created_at


def explain(facts: Situation, those: Generations) -> Sentence:
    """Say where the generation that is shown stands, or how it ended."""
    if those.is_past and those.cut_short_by is not None:
        before = those.cut_short_by.before.replace("_", " ")
        return (f"It was {before} when generation {those.shown + 1} began, which ended it.",)
    return status_line.explain(facts)


def _begun_by(deed: Audit) -> int | None:
    number = deed.data.get("generation") if isinstance(deed.data, dict) else None
    return number if deed.verb == Action.RESTART and isinstance(number, int) else None


def _restart(deed: Audit | None) -> Restart | None:
    if deed is None:
        return None
    data: Any = deed.data
    from_step, kept = data.get("from_step"), data.get("kept")
    count = data.get("count")
    name = f"{from_step} #{count}" if from_step and isinstance(count, int) and count > 1 else from_step
    kept = kept if isinstance(kept, int) else 0
    return Restart(deed.actor, deed.at, deed.reason, str(name or ""), kept, deed.before)


def _terminated(deeds: Iterable[Audit], began: Audit | None, ended: Audit | None) -> Deed | None:
    """Find who terminated the generation between two restarts."""
    first, last = began.key if began else 0, ended.key if ended else 2**63
    found = [deed for deed in deeds if deed.verb == Action.TERMINATE and first < deed.key < last]
    return Deed(found[0].actor, found[0].at, found[0].reason) if found else None
