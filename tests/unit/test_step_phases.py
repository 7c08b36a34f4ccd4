"""A step's phase decides which queries of a cycle find it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import pytest

from engine.replay.calls import phases
from engine.replay.calls.phases import StepPhase
from engine.replay.calls.steps import Steps
from engine.replay.records.history import AttemptRecord, StepRecord

ALL = [phase for phase in vars(phases).values() if isinstance(phase, StepPhase)]


@dataclass(eq=False)
class Call:
    record: StepRecord
    phase: StepPhase = phases.CALLED
    attempt: AttemptRecord | None = None
    times_closed: int = 0
    times_released: int = 0

    def closed(self) -> None:
        self.times_closed += 1

    def release(self) -> None:
        self.times_released += 1


def in_phase(steps: Any, phase: StepPhase, seq: int = 1) -> Any:
    call = Call(StepRecord(seq, 0, "do", "work", seq))
    steps.enter(call, phase)
    if phase.has_body:
        call.attempt = AttemptRecord(seq, 1, "worker", 0)
    return call


def assert_found_by_phase(steps: Steps, call: Any) -> None:
    phase = call.phase
    assert (1 in steps.open) is phase.is_open
    assert (1 in steps.bodies) is phase.has_body
    assert (1 in steps.asking) is (phase is phases.ASKING_DELAY)
    assert (1 in steps.deferred) is (phase is phases.DEFERRED)
    assert phase.has_body or call.attempt is None


@pytest.mark.parametrize(("before", "after"), list(itertools.product(ALL, ALL)), ids=lambda phase: phase.name)
def test_a_step_is_found_by_its_phase(before: StepPhase, after: StepPhase) -> None:
    steps = Steps()
    call = in_phase(steps, before)
    assert_found_by_phase(steps, call)
    steps.enter(call, after)
    assert call.phase is after
    assert_found_by_phase(steps, call)
    assert call.times_closed == (before.is_open and not after.is_open)


@pytest.mark.parametrize("before", [phase for phase in ALL if phase.has_body], ids=lambda phase: phase.name)
def test_a_step_whose_body_ends_stays_open_unless_nobody_waits_for_it(before: StepPhase) -> None:
    steps = Steps()
    call = in_phase(steps, before)
    steps.end_body(call)
    assert call.phase is (phases.WAITING if before.is_open else phases.CLOSED)
    assert_found_by_phase(steps, call)


@pytest.mark.parametrize("before", [phase for phase in ALL if phase.is_open], ids=lambda phase: phase.name)
def test_an_abandoned_step_keeps_its_body_until_that_ends(before: StepPhase) -> None:
    steps = Steps()
    call = in_phase(steps, before)
    steps.abandon(1)
    assert call.phase is (phases.ABANDONED if before.has_body else phases.CLOSED)
    assert call.times_released == 1
    assert_found_by_phase(steps, call)


def test_a_deferred_step_keeps_its_place_when_it_is_deferred_again() -> None:
    steps: Any = Steps()
    first, second = in_phase(steps, phases.DEFERRED, 1), in_phase(steps, phases.DEFERRED, 2)
    steps.enter(first, phases.DEFERRED)
    assert list(steps.deferred.values()) == [first, second]


def test_the_answer_of_a_delay_function_is_not_waited_for_by_a_cycle_that_leaves() -> None:
    steps = Steps()
    call = in_phase(steps, phases.ASKING_DELAY)
    steps.forget_asking()
    assert call.phase is phases.WAITING
    assert_found_by_phase(steps, call)
