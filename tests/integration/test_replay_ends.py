"""What an ended instance says of its steps, and what a journal makes of much."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine import StepConfigError, WorkflowStep, workflow
from engine.models import Instance
from engine.replay.records.history import StepRecord
from engine.replay.records.writes import Writes
from engine.worker.database.journal import BATCH_BYTES, _parts
from tests.shifts import run_to_end, running_shift, wait_for

pytestmark = pytest.mark.django_db(transaction=True)

deployed = SimpleNamespace(is_new=False)


@workflow(name="ends-changing-code")
async def changing_code(step: WorkflowStep) -> str:
    if not deployed.is_new:
        await step.do("old", str, "a")
    await step.do("kept", str, "b")
    await step.wait_for_event("go")
    return "done"


@workflow(name="ends-far-sleep")
async def far_sleep(step: WorkflowStep) -> str:
    await step.sleep_until("near", step.now() - timedelta(days=1))
    try:
        await step.sleep_until("far", step.now() + timedelta(days=366))
    except StepConfigError as error:
        return str(error)
    return "slept"


def test_steps_that_new_code_no_longer_reaches_are_listed_when_the_instance_ends() -> None:
    deployed.is_new = False
    instance = changing_code.start()
    with running_shift():
        wait_for(instance, "waiting")
        deployed.is_new = True
        instance.send_event("go")
        wait_for(instance)
    assert (instance.status, instance.unreached) == ("complete", [1])
    assert instance.steps.get(seq=1).name == "old"


def test_an_instance_whose_code_did_not_change_lists_nothing() -> None:
    deployed.is_new = False
    instance = changing_code.start()
    instance.send_event("go")
    assert run_to_end(instance).unreached == []


def test_a_sleep_until_a_moment_over_a_year_away_is_refused() -> None:
    output = run_to_end(far_sleep.start()).output
    assert "within 365 days" in output


def test_resuming_takes_away_the_reason_of_a_pause() -> None:
    instance = changing_code.start()
    instance.pause()
    Instance.objects.filter(key=instance.key).update(
        pause_reason={"type": "NonDeterminismError", "message": "x"}
    )
    assert instance.refresh().resume().refresh().pause_reason is None


def test_a_flush_is_cut_where_its_outputs_grow_large() -> None:
    def writes(size: int) -> Writes:
        record = StepRecord(1, 0, "do", "s", 1, output="x" * size)
        return Writes(steps={1: record})

    sizes = [10, BATCH_BYTES, 10, 10, BATCH_BYTES + 1]
    batch = [(cast(Any, number), writes(size)) for number, size in enumerate(sizes)]
    assert [[cycle for cycle, _ in part] for part in _parts(batch)] == [[0], [1], [2, 3], [4]]
