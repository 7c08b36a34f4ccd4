"""The waits of a test's instances."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Min, Q, QuerySet

from engine.models import Instance, Step
from engine.testing.errors import WorkflowTestError
from engine.testing.mocks import Mock
from engine.values.states import FINAL, InstanceStatus, RollbackState, StepKind, StepStatus

STARTS_LATER = Q(status=InstanceStatus.QUEUED, starts_at__isnull=False, started_at__isnull=True)
PARKED = Q(status=InstanceStatus.WAITING) | STARTS_LATER
PASSES = [StepKind.DO, StepKind.SLEEP]  # steps that wait only for a time


@dataclass(frozen=True, slots=True)
class Wait:
    """A step that an instance of the test waits for."""

    instance: str
    """The instance that waits, as workflow/id."""
    kind: str
    """The kind of the step."""
    name: str
    """The name of the step."""
    count: int
    """Which step of that name."""
    types: tuple[str, ...]
    """The types of events that would end it."""
    until: datetime | None
    """When the wait ends by itself; None for never."""

    def told(self, *, of: Instance) -> str:
        """Return the wait as a clause about this instance."""
        who = "it" if self.instance == str(of) else self.instance
        step = f"in step {_quoted(self.name)}"
        match self.kind:
            case StepKind.EVENT:
                return f"{who} waits for event {_or(self.types)} {step}, and nobody sent one"
            case StepKind.REQUEST:
                return f"{who} waits for an answer to request {_quoted(self.name)}, and nobody gave one"
            case StepKind.CHILD | StepKind.PARALLEL:
                return f"{who} waits for another instance {step}"
            case _:
                when = "" if self.until is None else f" until {self.until:%Y-%m-%d %H:%M:%S} UTC"
                return f"{who} waits {step}{when}"

    @property
    def advice(self) -> str:
        """A sentence that says how a test ends the wait, or empty."""
        match self.kind:
            case StepKind.EVENT:
                give = f"Give it one by test.send_event({_quoted(self.types[0])}, …)"
            case StepKind.REQUEST:
                give = f"Give one by test.answer({_quoted(self.name)}, …)"
            case _:
                return ""
        if self.until is None:
            return f"{give}."
        return f"{give}, or let it time out by test.force_timeout({_quoted(self.name)})."


def waits(instance: Instance) -> list[Wait]:
    """Return what the instance waits for, in the order in which the waits began."""
    return [
        Wait(str(instance), one.kind, one.name, one.count, tuple(one.event_types or ()), one.wake_at)
        for one in _waiting().filter(instance=instance).order_by("seq")
    ]


def next_moment(forced: Iterable[Mock], *, skips_time: bool) -> datetime | None:
    """Return the next moment to which a test can jump; None if there is none.

    These are sleeps, back-offs, starts at a time and forced timeouts. What is due on the way there comes first.
    """
    steps = _waiting().filter(instance__status=InstanceStatus.WAITING)
    passing = Q(kind__in=PASSES) | Q(rollback=RollbackState.RUNNING)
    is_passing = skips_time and (
        steps.filter(passing, wake_at__isnull=False).exists()
        or Instance.objects.filter(STARTS_LATER).exists()
    )
    timeouts = [(mock, step) for mock in forced for step in _meant(steps, mock)]
    if not is_passing and not timeouts:
        return None
    waiting = Instance.objects.filter(PARKED)
    found: datetime | None = waiting.aggregate(first=Min("wake_at"))["first"]
    for mock, step in timeouts:
        mock.used += step.wake_at == found
    return found


def _meant(steps: QuerySet[Step], forced: Mock) -> list[Step]:
    """Return the waits whose timeout is forced."""
    assert forced.target is not None
    found = [step for step in steps.exclude(kind__in=PASSES) if forced.target.fits(step, {})]
    for step in found:
        if step.wake_at is None:
            raise WorkflowTestError(
                f'Step "{step.name}" of {step.instance} waits without a timeout, so none can be forced.'
            )
    return found


def _waiting() -> QuerySet[Step]:
    is_waiting = Q(status=StepStatus.WAITING) | Q(rollback=RollbackState.RUNNING)
    steps = Step.objects.filter(is_waiting, generation=F("instance__generation"))
    return steps.exclude(instance__status__in=FINAL).select_related("instance")


def _or(names: Iterable[str]) -> str:
    return " or ".join(map(_quoted, names))


def _quoted(text: str) -> str:
    return f'"{text}"'
