"""The test of a workflow: prepare what comes from outside, run, and look at the result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from engine.declare.registry import Workflow
from engine.models import Attempt, Instance, Step
from engine.replay.records.outcomes import micros
from engine.testing import waiting
from engine.testing.clock import StandingClock
from engine.testing.errors import (
    NotCompleteError,
    NotFinishedError,
    UnusedError,
    WorkflowTestError,
    ended,
)
from engine.testing.mocks import NOTHING
from engine.testing.preparing import Preparing
from engine.testing.running import MAX_MOVES, Running, refuse_a_running_loop
from engine.testing.waiting import Wait
from engine.testing.worker import Setting
from engine.values.durations import parse_duration
from engine.values.states import FINAL, AttemptPhase, InstanceStatus, StepKind

PAUSING = (InstanceStatus.PAUSED, InstanceStatus.WAITING_FOR_PAUSE)


@contextmanager
def workflow_test(
    workflow: Workflow[Any, Any] | None = None,
    *,
    now: datetime | None = None,
    always_replay: bool = False,
    skips_time: bool = True,
    allow_unused: bool = False,
) -> Iterator[WorkflowTest]:
    """Run instances of the workflow in this thread, on Django's connection and in its transaction.

    The clock starts at `now` and stands still while code runs; sleeps and back-offs pass at once, unless `skips_time`
    is False. With `always_replay`, the worker forgets everything after each outcome, as if it were restarted each
    time, which reveals code that is not deterministic. Raises UnusedError at the end for preparations not used.
    """
    refuse_a_running_loop()
    with _one_clock(now) as clock:
        test = WorkflowTest(workflow, clock, always_replay=always_replay, skips_time=skips_time)
        try:
            yield test
        finally:
            test._running.close()
    if test._unused and not allow_unused:
        raise UnusedError(test._unused, test._how_it_stands())


_clocks: list[StandingClock] = []


@contextmanager
def _one_clock(now: datetime | None) -> Iterator[StandingClock]:
    """Return the clock of the enclosing test, or a new one: the database has one time."""
    if not _clocks:
        clock = StandingClock(now or timezone.now())
        _clocks.append(clock)
        try:
            with connection.execute_wrapper(clock.wrap):
                yield clock
        finally:
            _clocks.remove(clock)
        return
    if now is not None and now < _clocks[0].now:
        said = _clocks[0].now.isoformat()
        raise WorkflowTestError(f"now={now.isoformat()} is before the time of the enclosing test, {said}.")
    _clocks[0].move_to(_clocks[0].us if now is None else micros(now))
    yield _clocks[0]


class Time:
    """The time of a test, which is also the database's time in statements."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def now(self) -> datetime:
        """Return the time of the test, as an aware datetime."""
        return self._running.clock.now

    def travel(self, duration: Any) -> None:
        """Let time pass ("2 days", seconds, a timedelta). What becomes due on the way runs at its time."""
        self.travel_to(self.now() + parse_duration(duration, what="duration"))

    def travel_to(self, moment: datetime) -> None:
        """Let time pass until this moment. Raises WorkflowTestError for one in the past."""
        self._running.pass_until(moment)


class WorkflowTest(Preparing):
    """The test that `workflow_test` yields."""

    def __init__(
        self,
        workflow: Workflow[Any, Any] | None,
        clock: StandingClock,
        *,
        always_replay: bool,
        skips_time: bool,
    ) -> None:
        super().__init__()
        self.workflow = workflow
        self._instance: Instance | None = None
        self._skips_time = skips_time
        self._running = Running(Setting(clock, self._mocks, self._crashes, always_replay), self._give_all)
        self.time = Time(self._running)

    # Run

    def start(self, params: Any = None, **options: Any) -> Instance:
        """Start an instance as `Workflow.start` does, without running it. It becomes the test's instance."""
        if self.workflow is None:
            rule = "Name one, as in workflow_test(ship_order), or pass an instance to run()."
            raise WorkflowTestError(f"There is no workflow to start. {rule}")
        self._instance = self.workflow.start(params, **options)
        self._give_all()
        return self._instance

    def run(self, params: Any = NOTHING, **options: Any) -> Instance:
        """Run until nothing is due, and return the instance; its status may be `waiting`.

        With params, or on the first call, it starts an instance; pass an instance instead to continue it.
        Everything else that is due in the database runs as well, such as children. Raises NotFinishedError if it
        still runs after 10,000 waits, and NonDeterministicHandlerError if a replay did not repeat a call.
        """
        if isinstance(params, Instance):
            self._instance = params
            self._give_all()
        elif params is not NOTHING or options or (self._instance is None and self.workflow is not None):
            self.start(None if params is NOTHING else params, **options)
        if not self._running.go_on(skips_time=self._skips_time):
            raise NotFinishedError(
                str(self.instance), f"it still runs after {MAX_MOVES:,} waits", "Use time.travel() instead."
            )
        return self.instance.refresh()

    def run_to_end(self, params: Any = NOTHING, **options: Any) -> Instance:
        """Call `run`. Raises NotFinishedError, with what the instance waits for, if it has not finished."""
        instance = self.run(params, **options)
        if not instance.is_finished:
            raise self._not_finished(instance)
        return instance

    def run_to_complete(self, params: Any = NOTHING, **options: Any) -> Instance:
        """Call `run_to_end`. Raises NotCompleteError, with the error, if the instance did not complete."""
        instance = self.run_to_end(params, **options)
        if instance.status != InstanceStatus.COMPLETE:
            raise NotCompleteError(str(instance), instance.status, instance.last_problem)
        return instance

    # Look

    @property
    def instance(self) -> Instance:
        """The instance that was last started or run."""
        if self._instance is None:
            raise WorkflowTestError("No instance has been started yet: call run() or start().")
        return self._instance

    @property
    def waits_for(self) -> list[Wait]:
        """What the unfinished instances wait for, those of the test's instance first."""
        rows = list(Instance.objects.exclude(status__in=FINAL).order_by("key"))
        rows.sort(key=lambda row: row != self._instance)
        return [wait for row in rows for wait in waiting.waits(row)]

    @property
    def crashes(self) -> list[str]:
        """The crashes that have happened."""
        return list(self._running.crashes)

    def steps(self, name: str | None = None) -> list[Step]:
        """Return the steps of the current generation in the order of their start, or those with a name."""
        rows = Step.objects.filter(instance=self.instance, generation=self.instance.refresh().generation)
        return list((rows if name is None else rows.filter(name=name)).order_by("seq"))

    def attempts(self, name: str, *, count: int = 1, rollback: bool = False) -> list[Attempt]:
        """Return the attempts of a step of the current generation, or of its rollback."""
        seqs = [step.seq for step in self.steps(name) if step.count == count and step.kind == StepKind.DO]
        rows = Attempt.objects.filter(
            instance=self.instance,
            generation=self.instance.generation,
            step_seq__in=seqs,
            phase=AttemptPhase.ROLLBACK if rollback else AttemptPhase.DO,
        )
        return list(rows.order_by("step_seq", "number"))

    def _give_all(self) -> bool:
        return self._instance is not None and self._inputs.give_to(self._instance)

    def _how_it_stands(self) -> str:
        """Return why something may not have been used."""
        if self._instance is None:
            return "No instance was started."
        instance = self._instance.refresh()
        if instance.is_finished:
            return ended(str(instance), instance.status, instance.last_problem)
        return str(self._not_finished(instance))

    def _not_finished(self, instance: Instance) -> NotFinishedError:
        if self._running.is_down:
            return NotFinishedError(
                str(instance), f"its worker died by {self.crashes[-1]}", "Call run() to continue."
            )
        if instance.status in PAUSING:
            reason = (instance.pause_reason or {}).get("message", "it was paused by a person or program")
            return NotFinishedError(str(instance), f"it is paused: {reason}", "Call instance.resume().")
        # Its own waits; if those are for children, the waits of the children explain more.
        waits = self.waits_for
        telling = [wait for wait in waits if wait.advice] or waits
        why = "; ".join(wait.told(of=instance) for wait in telling) or f"its status is {instance.status}"
        return NotFinishedError(str(instance), why, " ".join(wait.advice for wait in telling).strip())
