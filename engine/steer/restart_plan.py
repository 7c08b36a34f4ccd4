"""Decide from the recorded steps what a restart keeps and what it repeats (docs/guarantees.md, 14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.models import Instance, Step
from engine.values.errors import RestartError, StepNotFoundError
from engine.values.identity import TOP
from engine.values.states import RollbackState, StepStatus


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
    returned_events: int
    """How many consumed events go back to the buffer, for the waits that run again."""
    dropped_events: int
    """How many buffered events are dropped: they are never delivered."""
    ended_children: int
    """How many children end."""
    refused: str
    """Why the restart is impossible, or empty."""


@dataclass(frozen=True, slots=True)
class Split:
    """The steps of a generation, split by a restart; `seqs` are the numbers of all kept steps, including inner ones."""

    keeps: list[PlannedStep]
    runs_again: list[PlannedStep]
    seqs: list[int]
    refusal: RestartError | None

    @property
    def discarded(self) -> list[int]:
        return [one.seq for one in self.runs_again]


def split(row: Instance, target: tuple[str, int, str] | None) -> Split:
    """Split the steps of the current generation; `target` is name, count and kind of the first that runs again.

    Raises StepNotFoundError.
    """
    steps = list(
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
        )
    )
    top = [step for step in steps if step.parent == TOP]
    if target is None:
        return Split([], [_planned(step) for step in top], [], None)
    first = _find(row, top, target)
    keeps = [step for step in top if step.seq < first.seq and _is_over(step)]
    kept = {step.seq for step in keeps}
    outermost = _outer_steps(steps)
    undone = {outermost[step.seq]: step.rollback for step in steps if step.rollback != RollbackState.NONE}
    return Split(
        [_planned(step) for step in keeps],
        [_planned(step) for step in top if step.seq not in kept],
        [seq for seq, outer in outermost.items() if outer in kept],
        _refusal(row, first, [step for step in keeps if step.seq in undone], undone),
    )


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


def _planned(step: Step) -> PlannedStep:
    return PlannedStep(step.seq, step.kind, step.name, step.count, step.status)
