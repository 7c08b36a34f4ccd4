"""Decide what a retry keeps inside the step that it runs again (docs/guarantees.md, 8 and 14)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.models import Step
from engine.values.identity import COMPENSATE
from engine.values.states import StepKind, StepStatus

_Inner = Mapping[int, Sequence[Step]]  # the inner steps of each step, by its number


@dataclass(frozen=True, slots=True)
class Inside:
    """The steps inside a failed one, by number: those that are kept, and those that continue around them."""

    kept: tuple[int, ...] = ()
    reopened: tuple[int, ...] = ()
    """The failed step itself, and failed ones inside it, if anything inside them is kept."""
    finished: int = 0
    """How many items, branches and nested steps are kept as complete, not counting what is inside them."""


NOTHING = Inside()


def inside(failed: Step, steps: Iterable[Step]) -> Inside:
    """Return what stays of the step that has failed: finished items, branches and nested steps do not run again."""
    inner: dict[int, list[Step]] = defaultdict(list)
    for step in steps:
        inner[step.parent].append(step)
    return _inside(failed, inner)


def _inside(failed: Step, inner: _Inner) -> Inside:
    within = inner.get(failed.seq, ())
    undone = {step.count for step in within if step.name == COMPENSATE}
    found = [_kept(step, inner) for step in within if _is_kept(step, failed) and step.count not in undone]
    found += [_inside(step, inner) for step in within if step.status == StepStatus.ERRORED]
    finished = sum(one.finished for one in found)
    if not finished:
        return NOTHING
    kept = tuple(seq for one in found for seq in one.kept)
    return Inside(kept, (failed.seq, *(seq for one in found for seq in one.reopened)), finished)


def _is_kept(step: Step, failed: Step) -> bool:
    if failed.kind == StepKind.DO and step.status == StepStatus.CANCELLED:
        return True  # its body has called it: a later one of the same name has the next number
    return step.status == StepStatus.COMPLETE


def _kept(step: Step, inner: _Inner) -> Inside:
    seqs, waiting = [], [step.seq]
    while waiting:
        seqs.append(waiting.pop())
        waiting += [one.seq for one in inner.get(seqs[-1], ())]
    return Inside(tuple(seqs), (), int(step.status == StepStatus.COMPLETE))
