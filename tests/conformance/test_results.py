"""`instance.result()`: the output as the type that the workflow returns."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from datetime import date

import pytest
from django.apps import apps
from django.db.migrations.state import ProjectState
from pydantic import SecretStr

from engine import (
    Handle,
    InstanceNotCompleteError,
    InstanceResult,
    UnknownWorkflowError,
    WorkflowStep,
    workflow,
    workflows,
)
from engine.models import Instance
from tests.stories import run_to_end


@dataclass
class Receipt:
    number: str
    paid_on: date
    code: SecretStr


def test_the_result_has_the_type_of_the_return_annotation() -> None:
    @workflow
    async def pay(step: WorkflowStep, number: str) -> list[Receipt]:
        return [Receipt(number, date(2026, 11, 23), SecretStr("1234"))]

    instance = run_to_end(pay.start("A-1"))
    assert instance.result() == [Receipt("A-1", date(2026, 11, 23), SecretStr("1234"))]
    assert instance.output[0]["paid_on"] == "2026-11-23"
    assert pay.get(instance.id).result() == instance.result()


def test_none_is_a_result() -> None:
    @workflow
    async def tidy(step: WorkflowStep) -> None:
        pass

    assert run_to_end(tidy.start()).result() is None


def test_without_an_annotation_the_result_is_the_output() -> None:
    @workflow
    async def plain(step: WorkflowStep):
        return {"a": [1, None]}

    assert run_to_end(plain.start()).result() == {"a": [1, None]}


def test_an_instance_without_a_result_says_how_it_stands() -> None:
    @workflow
    async def refuse(step: WorkflowStep) -> int:
        raise ValueError("No funds.")

    instance = refuse.start()
    with pytest.raises(InstanceNotCompleteError, match=r"it is queued\. Read it again when it has finished"):
        instance.result()
    run_to_end(instance)
    with pytest.raises(InstanceNotCompleteError, match="it is errored: ValueError: No funds") as caught:
        instance.result()
    assert (caught.value.status, caught.value.error.message) == ("errored", "No funds.")


def test_the_workflow_has_to_be_known() -> None:
    @workflow
    async def gone(step: WorkflowStep) -> int:
        return 3

    instance = run_to_end(gone.start())
    workflows._workflows.pop("gone")
    with pytest.raises(UnknownWorkflowError):
        instance.result()


def test_an_annotation_with_the_output_is_the_model_itself() -> None:
    assert Instance[list[Receipt]] is Instance
    instance = Instance(key=1, workflow="w", id="i")
    assert [copy.deepcopy(instance), pickle.loads(pickle.dumps(instance))] == [instance, instance]


def test_a_migration_can_make_the_model_again() -> None:
    made = ProjectState.from_apps(apps).apps.get_model("engine", "Instance")
    assert made._meta.db_table == Instance._meta.db_table


def test_handles_and_results_with_a_type_are_those_without() -> None:
    assert Handle[str]("w", "i") == Handle("w", "i")
    assert InstanceResult[str]("w", "i", "complete", "a") == InstanceResult("w", "i", "complete", "a")
