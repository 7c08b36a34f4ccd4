"""The generations of an instance: the one that a page shows, those beside it, and how each began."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Left, Length
from django.http import Http404

from engine.models import Audit, Generation, Instance
from engine.models.instance import FINAL
from engine.standing.facts import Deed
from engine.standing.why import Code, Moment, Part, Sentence
from engine.states import Action
from studio.filters import cursor
from studio.payloads import FULL_UP_TO

SHOWN = 50  # of the earlier ones, the newest
TRAIL_READ = 1_000


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
        parts: list[Part] = [f"Restarted by {self.actor or 'a program'} ", Moment("ago", self.at), *where]
        parts += [f" ({kept})"] if kept else []
        return (*parts, f": “{self.reason}”" if self.reason else ".")


@dataclass(frozen=True, slots=True)
class Generations:
    """Those of an instance; `shown` is the number of the one on the page."""

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
    def query(self) -> str:
        """Begin the queries of links that stay in an earlier generation."""
        return f"generation={self.shown}&" if self.is_past else ""

    @property
    def is_cut(self) -> bool:
        return len(self.earlier) < self.newest - 1

    @property
    def cut_short_by(self) -> Restart | None:
        """Tell what ended it, where it was open when the next one began."""
        return self.ended if self.ended is not None and self.ended.before not in FINAL else None


FIRST = Generations(1, 1)


def of(instance: Instance, shown: int | None = None) -> Generations:
    """Read them, with two queries where there are several. `shown` is one of them, by default the newest."""
    newest = instance.generation
    shown = newest if shown is None else shown
    if newest == 1:
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


def wanted(instance: Instance, text: str) -> int | None:
    """Read which one an address asks for: None for the newest. What there is not is a 404."""
    number = cursor(text)
    if number is None or number == instance.generation:
        return None
    if not Generation.objects.filter(instance_id=instance.key, number=min(number, 2**31 - 1)).exists():
        raise Http404
    return number


def as_of(instance: Any, number: int) -> Any:
    """Give an instance as an earlier generation left it, to be shown only. Raises Generation.DoesNotExist."""
    rows = Generation.objects.defer("output").annotate(
        output_text=Left(Cast("output", TextField()), FULL_UP_TO + 1),
        output_size=Length(Cast("output", TextField())),
    )
    kept: Any = rows.get(instance_id=instance.key, number=number)
    past = copy.copy(instance)
    past.generation = number
    for name in ("status", "error", "rollback", "unreached", "code", "started_at", "finished_at"):
        setattr(past, name, getattr(kept, name))
    past.output_text, past.output_size = kept.output_text, kept.output_size
    past.waiting_for = past.ends_as = ""
    past.wake_at = past.paused_at = past.deadline_at = past.owner = None
    return past


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
    found: Sequence[Audit] = [
        deed for deed in deeds if deed.verb == Action.TERMINATE and first < deed.key < last
    ]
    return Deed(found[0].actor, found[0].at, found[0].reason) if found else None
