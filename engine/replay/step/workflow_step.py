"""`step`: the facts of an instance, its milestones and its end, beside the calls that wait and work."""

from __future__ import annotations

import functools
from collections.abc import Coroutine
from datetime import datetime
from random import Random
from typing import Any, NoReturn
from uuid import UUID

from engine.declare.context import StepLog
from engine.replay.calls.call import INERT
from engine.replay.exit.endings import Decision
from engine.replay.nesting import nested_calls
from engine.replay.operations.operation import ProgressOperation
from engine.replay.records import outcomes
from engine.replay.state import CycleState
from engine.replay.step.child_calls import ChildCalls
from engine.replay.step.collection_calls import Collections
from engine.replay.step.entrance import Entrance
from engine.replay.step.wait_calls import WaitCalls
from engine.replay.step.work_calls import WorkCalls
from engine.values import identity
from engine.values.error_record import cut
from engine.values.errors import AbortWorkflow, CompleteWorkflow, ControlFlow, FailWorkflow, StepConfigError
from engine.values.identity import milestone_name
from engine.values.serialization import encode
from engine.values.states import StepKind


class WorkflowStep(WorkCalls, WaitCalls, ChildCalls, Collections):
    """The durable operations of one instance, and facts about it.

    An operation is identified by its kind, its name, and which call of that name it is. Its identity is fixed at the
    call, before the first await. On a replay, an operation that has an outcome returns it. The others start once
    everything recorded has been replayed.
    """

    def __init__(self, cycle: CycleState, decision: Decision) -> None:
        self._cycle = cycle
        self._decision = decision
        self._entrance = Entrance(cycle, decision)
        self._facts = cycle.claimed
        self._uuids = 0
        self.log = StepLog(self._say)

    # Facts

    @property
    def instance_id(self) -> str:
        """The id of this instance."""
        return self._facts.id

    @property
    def workflow(self) -> str:
        """The name of its workflow."""
        return self._facts.workflow

    @property
    def started_at(self) -> datetime:
        """When the instance first ran, as an aware datetime. A restart from the start begins anew."""
        return outcomes.moment(self._facts.started_us)

    def now(self) -> datetime:
        """Return the time of the last delivered outcome: the same on every replay."""
        return outcomes.moment(self._cycle.now_us)

    def uuid4(self) -> UUID:
        """Return a UUID that is the same on every replay; in a body, on every attempt."""
        if not self._cycle.loop.is_driven_here:
            return nested_calls.uuid4(self._cycle)
        self._uuids += 1
        return identity.seeded_uuid4(self._seed, self._uuids)

    @property
    def random(self) -> Random:
        """Return a random number generator that repeats its numbers on every replay; in a body, on every attempt."""
        return self._random if self._cycle.loop.is_driven_here else nested_calls.random(self._cycle)

    @functools.cached_property
    def _random(self) -> Random:
        return identity.seeded_random(*self._origin)

    @functools.cached_property
    def _seed(self) -> str:
        return identity.seed(*self._origin)

    @property
    def _origin(self) -> tuple[str, str, int]:
        # Steps that a restart kept were called with the values of the generation in which they ran.
        generation = self._cycle.history.first_generation or self._facts.generation
        return self._facts.workflow, self._facts.id, generation

    def _say(self, level: str, message: str, fields: dict[str, Any]) -> None:
        if self._cycle.loop.is_driven_here:
            self._cycle.say(level, message, fields)
        else:
            nested_calls.say(self._cycle, level, message, fields)

    def progress(self, message: str, percent: float | None = None) -> Coroutine[Any, Any, None]:
        """Record a milestone, which is shown in the Studio. `percent` is a number from 0 to 100.

        The message is its name: another message is another milestone. Raises StepConfigError for a wrong percent.
        """
        _check_percent(percent)
        said = str(message)
        output = encode({"message": said, "percent": percent}, what="progress")
        cycle = self._entrance.enter("progress", cut(said, 200))
        if cycle is None:
            return INERT
        record = cycle.identities.record_of(StepKind.PROGRESS, milestone_name(said))
        return cycle.enter(ProgressOperation(cycle, record, output))

    # Ending

    async def fail(self, message: str) -> NoReturn:
        """End the instance as errored, with this message. Its rollbacks run. Raises ParkingError inside a body.

        `except Exception` does not catch this; nor `abort` and `complete`.
        """
        raise self._decide("fail", FailWorkflow(message))

    async def abort(self, reason: str = "") -> NoReturn:
        """End the instance as terminated: stopped on purpose, not failed. No rollback runs. Raises ParkingError
        inside a body.
        """
        raise self._decide("abort", AbortWorkflow(reason))

    async def complete(self, output: Any = None) -> NoReturn:
        """End the instance as complete with this output, from anywhere in the handler. Raises ParkingError inside a
        body.
        """
        raise self._decide("complete", CompleteWorkflow(output))

    def _decide(self, operation: str, flow: ControlFlow) -> BaseException:
        if not self._cycle.loop.is_driven_here:
            return nested_calls.refusal(operation)
        return self._decision.decide(flow)


def _check_percent(percent: object) -> None:
    is_number = isinstance(percent, int | float) and not isinstance(percent, bool)
    if percent is not None and not (is_number and 0 <= percent <= 100):  # type: ignore[operator]
        rule = "It must be a number from 0 to 100, or None."
        raise StepConfigError("percent", percent, rule, what="Argument of step.progress")
