"""One request, ready to render: who was asked, what was answered, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.utils import timezone

from engine.models import Event, Instance, Step
from engine.steer import requests
from engine.steer.requests import Asked
from studio.approvals.closings import Closing
from studio.approvals.controls import Control, control_of
from studio.display import payloads

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


@dataclass(frozen=True, slots=True)
class Given:
    """The accepted answer."""

    by: str
    at: datetime
    comment: str
    value: payloads.Payload
    is_approval: bool | None = None  # None if it is neither

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
    control: Control = field(default_factory=lambda: control_of(None))
    comment: str = ""

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
    text = payloads.stored_text(payload.get("value"))
    value = payloads.payload(f"event-{event.key}", text, full_up_to=8 * 1024)
    comment = str(payload.get("comment") or "")
    return Given(event.sent_by, event.received_at, comment, value, _decision(payload.get("value")))


def _decision(value: object) -> bool | None:
    """Return True for a clear yes, False for a clear no, else None."""
    if isinstance(value, bool):
        return value
    fields = value if isinstance(value, dict) else {}
    found = [fields[name] for name in DECISIONS if isinstance(fields.get(name), bool)]
    return found[0] if len(found) == 1 else None
