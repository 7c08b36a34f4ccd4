"""How unanswered requests ended: expired or withdrawn, by whom and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from engine.models import Audit, Instance, Step
from engine.status.sentences.bidi import isolated
from engine.status.sentences.sentence import Moment, Sentence, quoted
from engine.values.states import Action

_DID = {Action.TERMINATE: "terminated the instance", Action.RESTART: "restarted the instance"}
# A step ends in the same transaction as its cause, with the same clock; a worker may notice a little later.
AT_ONCE = timedelta(seconds=5)
READ = 1_000  # rows of the audit log


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of a request that nobody answered."""

    said: Sentence
    at: datetime
    is_expired: bool = False

    @property
    def word(self) -> str:
        return "Expired" if self.is_expired else "Withdrawn"


def closings_of(steps: Sequence[Step], late: Iterable[Any]) -> Mapping[Any, Closing]:
    """Return how these requests ended, by primary key, with one query.

    `late` are those whose time is over but that no worker has ended yet.
    """
    behind = set(late)
    over = [step for step in steps if step.status in ("errored", "cancelled") or step.pk in behind]
    entries = _entries({step.instance_id for step in over if not _has_expired(step)})
    return {step.pk: _closing(step, entries.get(step.instance_id, ())) for step in over}


def _has_expired(step: Step) -> bool:
    return step.status == "errored" or (step.status == "waiting" and not step.instance.ends_as)


def _closing(step: Step, entries: Sequence[Audit]) -> Closing:
    if _has_expired(step):
        at = step.wake_at or step.finished_at or step.started_at
        return Closing(("Expired ", Moment("ago", at), "."), at, is_expired=True)
    at = step.finished_at or step.started_at
    entry = next((one for one in entries if _ended(one, step)), None)
    if entry is None:
        return Closing((*_by_itself(step.instance, step), " ", Moment("ago", at), "."), at)
    reason = f" ({quoted(entry.reason)})" if entry.reason else ""
    who = f"{isolated(entry.actor) or 'a program'} {_DID[Action(entry.verb)]} "
    return Closing((f"Closed: {who}", Moment("ago", entry.at), f"{reason}."), at)


def _by_itself(instance: Instance, step: Step) -> Sentence:
    """Describe an end that no user caused: the workflow continued without an answer, or the instance ended."""
    if step.status == "waiting":
        return ("Closed: the instance is being rolled back, since",)
    end, over = instance.finished_at, step.finished_at
    if step.generation == instance.generation and end and over and abs(end - over) < AT_ONCE:
        return (f"Closed: the instance ended ({instance.status})",)
    return ("Closed: the workflow stopped waiting for an answer",)


def _ended(entry: Audit, step: Step) -> bool:
    if entry.at < step.started_at or (step.finished_at and entry.at > step.finished_at + AT_ONCE):
        return False
    if entry.verb == Action.RESTART:
        data: Any = entry.data
        return bool(data.get("generation") == step.generation + 1)
    return True


def _entries(keys: set[int]) -> Mapping[int, Sequence[Audit]]:
    """Read who terminated or restarted these instances, newest first."""
    rows = Audit.objects.filter(instance_key__in=keys, verb__in=[*_DID], outcome="done").order_by("-key")
    found: dict[int, list[Audit]] = {}
    for entry in rows[:READ] if keys else ():
        if entry.instance_key is not None:
            found.setdefault(entry.instance_key, []).append(entry)
    return found
