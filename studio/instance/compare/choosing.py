"""With which run an instance is compared: what the address names, or else the last complete one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.models import Instance
from engine.values.errors import GenerationNotFoundError
from engine.values.states import InstanceStatus
from studio.instance.compare.side import Side, read_side
from studio.instance.page import InstancePage

RECENT = 8  # of each status are read, and shown
LONGEST = 100  # characters of what was typed

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
_NUMBER = re.compile(r"[0-9]{1,9}")
_SHOWN = ("key", "workflow", "id", "status", "waiting_for", "created_at", "finished_at")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for: an id of the same workflow, and one of its generations."""

    id: str = ""
    generation: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Asked:
        texts = [str(given.get(name, "")).replace("\0", "").strip() for name in ("with", "with_generation")]
        return cls(*texts)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The other run, or why there is none."""

    side: Side | None
    problem: str = ""
    is_chosen_for_them: bool = False

    @property
    def is_last_complete(self) -> bool:
        """Whether it was chosen because it is the last complete one."""
        is_complete = self.side is not None and self.side.instance.status == InstanceStatus.COMPLETE
        return self.is_chosen_for_them and is_complete


@dataclass(frozen=True, slots=True)
class Candidates:
    """Other instances of the workflow, the newest first."""

    recent: tuple[Instance, ...]
    previous: Instance | None
    last_complete: Instance | None

    @property
    def best(self) -> Instance | None:
        return self.last_complete or self.previous or next(iter(self.recent), None)


def candidates_of(instance: Instance) -> Candidates:
    """Read them, by status: the lists of a workflow have no other index."""
    newest, before = _newest(instance, RECENT), _newest(instance, 1, before=instance.key)
    complete = [one for one in before if one.status == InstanceStatus.COMPLETE]
    complete += [one for one in newest if one.status == InstanceStatus.COMPLETE]
    return Candidates(
        recent=tuple(newest[:RECENT]),
        previous=next(iter(before), None),
        last_complete=next(iter(complete), None),
    )


def _newest(instance: Instance, limit: int, *, before: int | None = None) -> list[Instance]:
    rows: Any = Instance.objects.filter(workflow=instance.workflow).exclude(key=instance.key)
    if before is not None:
        rows = rows.filter(key__lt=before)
    parts = [rows.filter(status=status).order_by("-key").only(*_SHOWN)[:limit] for status in InstanceStatus]
    return sorted(parts[0].union(*parts[1:], all=True), key=lambda one: one.key, reverse=True)


def choose(page: InstancePage, asked: Asked, candidates: Candidates) -> Chosen:
    """Return the run to compare with. Never raises, whatever was asked for."""
    if not asked.id:
        best = candidates.best
        if best is None:
            return Chosen(None)
        found = _read(page, best.id, None)
        return Chosen(found.side, found.problem, is_chosen_for_them=True)
    if not _ID.fullmatch(asked.id):
        return Chosen(None, f"“{_short(asked.id)}” is not an instance id.")
    if asked.generation and not _NUMBER.fullmatch(asked.generation):
        return Chosen(None, f"“{_short(asked.generation)}” is not the number of a generation.")
    return _read(page, asked.id, int(asked.generation) if asked.generation else None)


def _read(page: InstancePage, id: str, generation: int | None) -> Chosen:
    workflow = page.instance.workflow
    try:
        side = read_side(workflow, id, generation)
    except Instance.DoesNotExist:
        return Chosen(None, f"There is no instance {_short(id)} of {workflow}. It may have been deleted.")
    except GenerationNotFoundError:
        return Chosen(None, f"Instance {_short(id)} has no generation {generation}.")
    if (side.instance.key, side.generation) == (page.instance.key, page.generations.shown):
        return Chosen(None, "This is the same run. Choose another one to compare it with.")
    return Chosen(side)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
