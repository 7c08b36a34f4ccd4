"""One request, ready to render: who was asked, what was answered, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.utils import timezone

from engine.models import Audit, Event, Instance, Step
from engine.status.sentences.bidi import isolated
from engine.status.sentences.sentence import Moment, Sentence, quoted
from engine.steer import requests
from engine.steer.requests import Asked
from engine.values.states import Action
from studio.approvals.controls import Control, control_of
from studio.display import payloads

_DID = {Action.TERMINATE: "terminated the instance", Action.RESTART: "restarted the instance"}
# A step ends in the same transaction as its cause, with the same clock; a worker may notice a little later.
AT_ONCE = timedelta(seconds=5)
READ = 1_000  # rows of the audit trail

# Names of fields that mean yes or no. Only the workflow knows what any other answer means.
DECISIONS = (
    "approve",
    "approved",
    "approval",
    "accept",
    "accepted",
    "allow",
    "allowed",
    "confirm",
    "confirmed",
    "ok",
)


@dataclass(frozen=True)
class Given:
    """The accepted answer."""

    what: str
    by: str
    at: datetime
    comment: str
    stored: object
    is_approval: bool | None = None  # None if it is neither

    @cached_property
    def value(self) -> payloads.Payload:
        """The answer itself, made when it is shown: a list has a hundred answers and shows one."""
        return payloads.payload(self.what, payloads.stored_text(self.stored), full_up_to=8 * 1024)

    @property
    def word(self) -> str:
        return {True: "Approved", False: "Refused", None: "Answered"}[self.is_approval]


@dataclass(frozen=True)
class Entry:
    """One request, as shown to one user."""

    instance: Instance
    step: Step
    may_answer: bool
    given: Given | None = None
    closing: Closing | None = None
    problems: Sequence[Any] = ()
    filled: Control | None = None  # the form with what was typed
    comment: str = ""

    @cached_property
    def control(self) -> Control:
        """The form of the answer, made when it is shown: a list has a hundred requests and one form."""
        return self.filled or control_of(self.asked.schema)

    @cached_property
    def asked(self) -> Asked:
        return Asked.of(self.step)

    @property
    def fields_wrong(self) -> int:
        """The number of fields with problems; a field may have several."""
        return len({problem.path for problem in self.problems})

    @property
    def ref(self) -> str:
        return f"{self.instance.key}-{self.step.generation}-{self.step.seq}"

    @property
    def is_open(self) -> bool:
        return self.given is None and self.closing is None and self.step.status == "waiting"

    @property
    def look(self) -> tuple[str, str]:
        """The status that gives its color, and its icon."""
        if self.is_open:
            return "approval", "diamond"
        if self.given is None:
            return "terminated", "clock" if self.closing and self.closing.is_expired else "ban"
        looks = {True: ("complete", "check"), False: ("errored", "x"), None: ("queued", "check")}
        return looks[self.given.is_approval]

    @property
    def ended_at(self) -> datetime:
        if self.given is not None:
            return self.given.at
        return self.closing.at if self.closing else self.step.started_at

    @property
    def title(self) -> str:
        """The first line of the message."""
        return self.asked.message.strip().split("\n", 1)[0]

    @property
    def rest(self) -> str:
        return self.asked.message.strip().partition("\n")[2].strip("\n")

    @property
    def who(self) -> list[tuple[str, bool]]:
        """The assignees; for each, whether it is a group."""
        groups = requests.GROUP
        return [(one.removeprefix(groups), one.startswith(groups)) for one in self.asked.assignees]

    @property
    def urgency(self) -> str:
        """A CSS class for the last quarter and the last tenth of the time to answer."""
        if self.step.wake_at is None:
            return ""
        given, left = self.step.wake_at - self.step.started_at, self.step.wake_at - timezone.now()
        return "s-errored" if left < given / 10 else "s-retrying" if left < given / 4 else ""


def given(event: Event) -> Given:
    """Return the answer in an event."""
    payload: Any = event.payload if isinstance(event.payload, dict) else {}
    return Given(
        what=f"event-{event.key}",
        by=event.sent_by,
        at=event.received_at,
        comment=str(payload.get("comment") or ""),
        stored=payload.get("value"),
        is_approval=_decision(payload.get("value")),
    )


def _decision(value: object) -> bool | None:
    """Return True for a clear yes, False for a clear no, else None."""
    if isinstance(value, bool):
        return value
    fields = value if isinstance(value, dict) else {}
    found = [fields[name] for name in DECISIONS if isinstance(fields.get(name), bool)]
    return found[0] if len(found) == 1 else None


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
