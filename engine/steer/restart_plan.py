"""Decide from the recorded steps what a restart keeps and what it repeats (docs/guarantees.md, 14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.models import Instance, Step
from engine.steer.retried import NOTHING, Inside, inside
from engine.values.error_record import raised_in
from engine.values.errors import KeysSpentError, RestartError, StepNotFailedError, StepNotFoundError
from engine.values.identity import TOP
from engine.values.states import InstanceStatus, RollbackState, StepStatus


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A top-level step of the current generation."""

    seq: int
    """Its number."""
    kind: str
    """Its kind."""
    name: str
    """Its name."""
    count: int
    """Which step of that kind and name it is."""
    status: str
    """Its status."""

    def __str__(self) -> str:
        number = "" if self.count == 1 else f" #{self.count}"
        return f'{self.kind} "{self.name}"{number}'


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """What a restart would do: the result of `restart.preview`."""

    generation: int
    """The number of the new generation."""
    keeps: list[PlannedStep]
    """The steps whose outcomes it keeps."""
    runs_again: list[PlannedStep]
    """The steps that run again, with their side effects."""
    kept_inside: int
    """How many finished items, branches or nested steps of the retried step are kept."""
    returned_events: int
    """How many consumed events go back to the buffer, for the waits that run again."""
    dropped_events: int
    """How many buffered events are dropped: they are never delivered."""
    ended_children: int
    """How many children end."""
    refused: str
    """Why the restart is impossible, or empty."""
    keys_spent: str
    """Why the steps that run again cannot keep their idempotency keys, or empty."""


@dataclass(frozen=True, slots=True)
class Split:
    """The steps of a generation, split by a restart; `seqs` are the numbers of all kept steps, including inner ones."""

    keeps: list[PlannedStep]
    runs_again: list[PlannedStep]
    seqs: list[int]
    inside: Inside
    """What stays of the first step that runs again."""
    refusal: RestartError | None
    spent: KeysSpentError | None
    """Why what runs again cannot keep its idempotency keys."""

    @property
    def discarded(self) -> list[int]:
        return [one.seq for one in self.runs_again]


def split(row: Instance, target: tuple[str, int, str] | None) -> Split:
    """Split the steps of the current generation; `target` is name, count and kind of the first that runs again.

    Raises StepNotFoundError.
    """
    steps = _steps(row)
    top = [step for step in steps if step.parent == TOP]
    if target is None:
        return _split(row, steps, [])
    first = _find(row, top, target)
    return _split(row, steps, [step for step in top if step.seq < first.seq and _is_over(step)], first)


def split_at_failure(row: Instance) -> tuple[Split, PlannedStep]:
    """Split the steps of an errored generation at the step that ended it: it keeps what the handler had received
    before. Raises StepNotFailedError.
    """
    steps = _steps(row)
    top = [step for step in steps if step.parent == TOP]
    failed = _failed(row, top)
    if failed is None:
        raise StepNotFailedError(row.workflow, row.id, row.status)
    keeps = [step for step in top if step is not failed and _is_over(step) and _comes_before(step, failed)]
    return _split(row, steps, keeps, failed, inside(failed, steps)), _planned(failed)


def _steps(row: Instance) -> list[Step]:
    return list(
        Step.objects.filter(instance_id=row.key, generation=row.generation)
        .order_by("seq")
        .only(
            "instance_id",
            "generation",
            "seq",
            "parent",
            "kind",
            "name",
            "count",
            "status",
            "delivery",
            "rollback",
            "kept_from",
        )
    )


def _split(
    row: Instance,
    steps: Sequence[Step],
    keeps: Sequence[Step],
    first: Step | None = None,
    within: Inside = NOTHING,
) -> Split:
    kept = {step.seq for step in keeps}
    outermost = _outer_steps(steps)
    undone = {outermost[step.seq]: step.rollback for step in steps if step.rollback != RollbackState.NONE}
    again = [step for step in steps if step.parent == TOP and step.seq not in kept]
    return Split(
        [_planned(step) for step in keeps],
        [_planned(step) for step in again],
        [*(seq for seq, outer in outermost.items() if outer in kept), *within.kept],
        within,
        None
        if first is None
        else _refusal(row, first, [step for step in keeps if step.seq in undone], undone),
        next(
            (_spent(row, step, why) for step in again if (why := undone.get(step.seq) or _other(row, step))),
            None,
        ),
    )


def _failed(row: Instance, top: Sequence[Step]) -> Step | None:
    """Return the step whose failure ended the instance: the first with its error that the handler received.

    Branches side by side may have failed alike. Kept, the failure of one of them would end the retry at once.
    """
    if row.status != InstanceStatus.ERRORED or not isinstance(row.error, dict):
        return None
    failures = [step for step in top if step.status == StepStatus.ERRORED and step.delivery is not None]
    alike = _with_error(row, failures)
    if row.error.get("step") is not None:  # of steps with a body, also of inner ones
        named = [step for step in failures if step.name == row.error["step"]] or failures
        alike = [step for step in named if step in alike] or named
    return min(alike, key=lambda step: step.delivery or 0, default=None)


def _with_error(row: Instance, failures: Sequence[Step]) -> list[Step]:
    rows = Step.objects.filter(instance_id=row.key, generation=row.generation)
    errors = rows.filter(seq__in=[step.seq for step in failures]).values_list("seq", "error")
    wanted = raised_in(row.error)
    found = {seq for seq, error in errors if _kind_of_error(error) == wanted}
    return [step for step in failures if step.seq in found]


def _kind_of_error(error: Any) -> tuple[Any, Any]:
    return (error.get("type"), error.get("message")) if isinstance(error, dict) else (None, None)


def _comes_before(step: Step, failed: Step) -> bool:
    """Return whether the handler received the outcome before the failure, or has yet to."""
    return step.delivery is None or step.delivery < (failed.delivery or 0)


def _find(row: Instance, top: Sequence[Step], target: tuple[str, int, str]) -> Step:
    name, count, kind = target
    for step in top:
        if (step.name, step.count, step.kind) == (name, count, kind):
            return step
    known = [(step.kind, step.name, step.count) for step in top]
    raise StepNotFoundError(row.workflow, row.id, (kind, name, count), known)


def _is_over(step: Step) -> bool:
    """Return whether its outcome has reached the handler or is final: an atomic step's may not have reached it yet."""
    return step.delivery is not None or step.status == StepStatus.COMPLETE


def _outer_steps(steps: Iterable[Step]) -> dict[int, int]:
    """Return the number of the top-level step that each step belongs to. Inner steps start after their outer step."""
    found: dict[int, int] = {}
    for step in steps:
        found[step.seq] = step.seq if step.parent == TOP else found[step.parent]
    return found


def _refusal(
    row: Instance, first: Step, undone: Sequence[Step], states: Mapping[int, str]
) -> RestartError | None:
    """Return why a step cannot be kept: once it is rolled back, even partly, its result is no longer valid."""
    if not undone:
        return None
    shown, earliest = str(_planned(undone[-1])), str(_planned(undone[0]))
    return RestartError(row.workflow, row.id, str(_planned(first)), shown, earliest, states[undone[-1].seq])


def _other(row: Instance, step: Step) -> str:
    """Return "other" if the step has run under other keys than those of the generation that kept it."""
    generation = row.keys_from or row.generation
    return "other" if step.kept_from is not None and step.kept_from < generation else ""


def _spent(row: Instance, step: Step, rollback: str) -> KeysSpentError:
    return KeysSpentError(row.workflow, row.id, str(_planned(step)), rollback)


def _planned(step: Step) -> PlannedStep:
    return PlannedStep(step.seq, step.kind, step.name, step.count, step.status)
