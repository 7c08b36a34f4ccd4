"""What a dry run says about one instance, and how it is decided."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.dry_run.cycle import DryCycle
from engine.replay.exit import endings
from engine.replay.records.history import StepRecord
from engine.values.durations import format_duration
from engine.values.error_record import cut
from engine.values.errors import (
    ChildWorkflowError,
    CodeChangedError,
    EventTimeoutError,
    RollbackNotFoundError,
    StepError,
    UnknownWorkflowError,
    WorkflowTimeoutError,
)
from engine.values.states import InstanceStatus

# The failures that steps record. A handler that does not catch one ends its instance, as it did before.
RECORDED_FAILURES = (StepError, ChildWorkflowError, EventTimeoutError)
NAMED = 3  # steps in a sentence
MAX_REASON = 1_000  # characters


class Verdict(StrEnum):
    """What today's code does with the record of an instance."""

    FITS = "fits"
    DIFFERS = "differs"  # it takes another way than recorded
    STOPS = "stops"  # the engine would pause it, or it would end by an error of the code
    UNKNOWN = "unknown"  # no workflow of that name is declared: the instance waits


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on an instance; `step` names the step where the problem shows, if there is one."""

    workflow: str
    id: str
    status: str
    verdict: Verdict
    error: str = ""  # the class of the error with which the instance would stop
    step: str = ""
    reason: str = ""
    new: Sequence[str] = ()  # steps that would run although recorded ones come after them
    unreached: Sequence[str] = ()  # recorded steps that the code did not call


@dataclass(frozen=True, slots=True)
class Judgement:
    """A finding without the name of its instance."""

    verdict: Verdict
    error: str = ""
    step: StepRecord | None = None
    reason: str = ""
    new: Sequence[StepRecord] = ()
    unreached: Sequence[StepRecord] = ()

    def of(self, workflow: str, id: str, status: str) -> Finding:
        return Finding(
            workflow=workflow,
            id=id,
            status=status,
            verdict=self.verdict,
            error=self.error,
            step=shown(self.step) if self.step else "",
            reason=cut(self.reason, MAX_REASON),
            new=[shown(record) for record in self.new],
            unreached=[shown(record) for record in self.unreached],
        )


FITS = Judgement(Verdict.FITS)


def unknown(workflow: str) -> Judgement:
    """Judge an instance of a workflow that no code declares."""
    reason = f'The code declares no workflow "{workflow}". Its instances wait until a worker serves it again.'
    return Judgement(Verdict.UNKNOWN, UnknownWorkflowError.__name__, reason=reason)


def stops(error: BaseException, step: StepRecord | None) -> Judgement:
    """Judge an instance that would stop with this error."""
    return Judgement(Verdict.STOPS, type(error).__name__, step, str(error) or type(error).__name__)


def judge(cycle: DryCycle) -> Judgement:
    """Judge a cycle that has been advanced as far as the record goes."""
    if cycle.refusal is not None:
        is_about_code = isinstance(cycle.refusal, CodeChangedError)
        return stops(cycle.refusal, None if is_about_code else cycle.at)
    if cycle.not_undoable is not None:
        return stops(RollbackNotFoundError(cycle.not_undoable.name), cycle.not_undoable)
    if (
        cycle.exit.decision.cut_short is not None
    ):  # it is being rolled back: its handler only brings the functions
        return FITS
    return _failure(cycle) or _way(cycle)


def _failure(cycle: DryCycle) -> Judgement | None:
    """Judge a handler that fails by itself: it raises, does not return, or waits for nothing that can come."""
    ending = cycle.exit.decision.found()
    where = f'after step "{shown(cycle.at)}"' if cycle.at else "before its first step"
    if ending is None:
        is_stuck = not (cycle.steps.open or cycle.new_calls())
        return stops(endings.DeadlockError(), cycle.at) if is_stuck else None
    if cycle.exit.decision.forced is not None:
        limit = format_duration(cycle.workflow.handler_timeout)
        reason = f"The handler does not come to its next step within {limit} {where}. Does it loop?"
        return Judgement(Verdict.STOPS, WorkflowTimeoutError.__name__, cycle.at, reason)
    if ending.status is not InstanceStatus.ERRORED or cycle.exit.decision.decided is not None:
        return None
    if isinstance(_raised(cycle), RECORDED_FAILURES):
        return None
    error = json.loads(ending.error or "{}")
    said = f"{error.get('type')}: {error.get('message')}".rstrip(": ")
    return Judgement(
        Verdict.STOPS, error.get("type", ""), cycle.at, f"The handler would fail {where}. {said}"
    )


def _raised(cycle: DryCycle) -> BaseException | None:
    main = cycle.main
    return None if main is None or main.cancelled() else main.exception()


def _way(cycle: DryCycle) -> Judgement:
    """Judge the way that the handler took: a recorded step without its call, or a new one before a recorded one."""
    unreached = cycle.unreached_steps()
    new = [] if cycle.has_ended else cycle.new_calls() if unreached else _inserted(cycle)
    if not (new or unreached):
        return FITS
    if not unreached:
        reason = (
            f"The code would run {_named(new)}, which the record does not have, before steps that it has."
        )
    elif not new:
        reason = f"The code would not call {_named(unreached)}, which the record has."
    else:
        reason = (
            f"The code would run {_named(new)}, which the record does not have. "
            f"It has not called {_named(unreached)}, which the record has."
        )
    return Judgement(Verdict.DIFFERS, "", (new or unreached)[0], reason, new, unreached)


def _inserted(cycle: DryCycle) -> list[StepRecord]:
    """Return the new calls that come before the call of a recorded step.

    A pause leaves out steps that were about to start, while a milestone that was called after them is recorded. Such a
    step left its number unused, and is not new.
    """
    new = cycle.new_calls(before_recorded=True)
    recorded = [record.seq for record in cycle.history.steps.values() if record.is_recorded]
    unused = max(recorded, default=0) - len(recorded)
    return new if len(new) > unused else []


def shown(record: StepRecord | None) -> str:
    """Return the name of a step, with its number if several have the name."""
    if record is None:
        return ""
    return record.name if record.count == 1 else f"{record.name} #{record.count}"


def _named(records: Sequence[StepRecord]) -> str:
    names = ", ".join(f'"{shown(record)}"' for record in records[:NAMED])
    more = len(records) - NAMED
    return names + (f" and {more:,} more" if more > 0 else "")
