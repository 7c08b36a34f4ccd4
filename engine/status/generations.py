"""The generations of an instance: how each began and ended, and by whom."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.models import Audit, Generation, Instance
from engine.status.facts import LastAction
from engine.status.sentences.bidi import isolated
from engine.status.sentences.sentence import Code, Moment, Part, Sentence, quoted
from engine.values.states import FINAL, Action

SHOWN = 50  # of the earlier ones, the newest
TRAIL_READ = 1_000


@dataclass(frozen=True, slots=True)
class Restart:
    """The restart that began a generation."""

    actor: str
    at: datetime
    reason: str
    from_step: str
    kept: int
    before: str  # the instance's status before it

    @property
    def said(self) -> Sentence:
        """Return a sentence about the restart."""
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
    """The generations of an instance; `shown` is the number of the requested one."""

    shown: int
    newest: int
    earlier: tuple[Generation, ...] = ()  # the newest first
    began: Restart | None = None  # of the shown one
    ended: Restart | None = None  # the restart that followed an earlier one
    terminated: LastAction | None = None

    @property
    def is_past(self) -> bool:
        return self.shown != self.newest

    @property
    def is_cut(self) -> bool:
        return len(self.earlier) < self.newest - 1

    @property
    def cut_short_by(self) -> Restart | None:
        """Return what ended it if it was open when the next generation began."""
        return self.ended if self.ended is not None and self.ended.before not in FINAL else None


FIRST = Generations(1, 1)


def generations_of(
    instance: Instance, shown: int | None = None, *, limit: int = SHOWN, with_errors: bool = False
) -> Generations:
    """Read the generations, with two queries if there are several. `shown` is by default the newest; it need not exist.

    Of the earlier ones, reads the ends of the newest; `with_errors` also reads their errors.
    """
    newest = instance.generation
    shown = newest if shown is None else shown
    if shown == newest == 1:
        return FIRST
    rows = Generation.objects.filter(instance_id=instance.key).order_by("-number")
    rows = rows.defer("params", "output") if with_errors else rows.only("number", "status", "finished_at")
    trail = Audit.objects.filter(
        instance_key=instance.key, outcome="done", verb__in=[Action.RESTART, Action.TERMINATE]
    )
    entries = list(trail.order_by("-key")[:TRAIL_READ])
    restarts = {number: entry for entry in entries if (number := _begun_by(entry)) is not None}
    return Generations(
        shown,
        newest,
        tuple(rows[:limit]),
        _restart(restarts.get(shown)),
        _restart(restarts.get(shown + 1)),
        _terminated(entries, restarts.get(shown), restarts.get(shown + 1)),
    )


def _begun_by(entry: Audit) -> int | None:
    number = entry.data.get("generation") if isinstance(entry.data, dict) else None
    return number if entry.verb == Action.RESTART and isinstance(number, int) else None


def _restart(entry: Audit | None) -> Restart | None:
    if entry is None:
        return None
    data: Any = entry.data
    from_step, kept = data.get("from_step"), data.get("kept")
    count = data.get("count")
    name = f"{from_step} #{count}" if from_step and isinstance(count, int) and count > 1 else from_step
    kept = kept if isinstance(kept, int) else 0
    return Restart(entry.actor, entry.at, entry.reason, str(name or ""), kept, entry.before)


def _terminated(entries: Iterable[Audit], began: Audit | None, ended: Audit | None) -> LastAction | None:
    """Return who terminated the generation between two restarts."""
    first, last = began.key if began else 0, ended.key if ended else 2**63
    found = [entry for entry in entries if entry.verb == Action.TERMINATE and first < entry.key < last]
    return LastAction(found[0].actor, found[0].at, found[0].reason) if found else None
