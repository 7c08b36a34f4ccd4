"""Restart from the start with other params: guarantee 14."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from pydantic import BaseModel, Field

from engine import InvalidParamsError, InvalidValueError, UnknownWorkflowError, WorkflowStep, workflow
from engine.declare.registry import workflows
from engine.models import Audit, Generation, Instance, SearchValue
from engine.status.snapshot import snapshot
from engine.steer.indexing import paths
from tests.stories import run_to_end

pytestmark = pytest.mark.usefixtures("nothing_is_violated")


class Address(BaseModel):
    city: str = Field(min_length=1)


def ended(instance: Instance) -> Instance:
    run_to_end(instance)
    return instance.refresh()


def declare(**options: Any) -> Any:
    @workflow("ship", **options)
    async def ship(step: WorkflowStep, to: Address) -> str:
        return await step.do("send", lambda: f"sent to {to.city}")

    return ship


def test_a_generation_runs_with_its_own_params_and_each_keeps_its_own() -> None:
    instance = ended(declare().start({"city": "Bonn"}))
    assert instance.output == "sent to Bonn"
    for city in ("Köln", None, "Ulm"):  # the second restart changes nothing
        given = {} if city is None else {"params": {"city": city}}
        instance.restart(by="ana", **given)
        ended(instance)
    assert (instance.generation, instance.output, instance.params) == (4, "sent to Ulm", {"city": "Ulm"})
    cities = [snapshot(instance, number).instance.params["city"] for number in (1, 2, 3, 4)]
    assert cities == ["Bonn", "Köln", "Köln", "Ulm"]
    kept = list(Generation.objects.order_by("number").values_list("params", flat=True))
    assert kept == [{"city": "Bonn"}, None, {"city": "Köln"}]
    changed = [row.data.get("has_new_params") for row in Audit.objects.filter(verb="restart").order_by("key")]
    assert changed == [True, None, True]


def test_wrong_params_change_nothing() -> None:
    instance = ended(declare().start({"city": "Bonn"}))
    for wrong in ({"city": ""}, {}, None, 1):
        with pytest.raises(InvalidParamsError) as refused:
            instance.restart(params=wrong)
        assert refused.value.field == "params"
    with pytest.raises(InvalidValueError, match="Only a restart from the start can change them"):
        instance.restart("send", params={"city": "Ulm"})
    assert (instance.refresh().generation, instance.params) == (1, {"city": "Bonn"})
    assert not Audit.objects.filter(verb="restart").exists()


def test_a_workflow_that_is_gone_cannot_check_them() -> None:
    instance = ended(declare().start({"city": "Bonn"}))
    workflows._workflows.pop("ship")
    with pytest.raises(UnknownWorkflowError):
        instance.restart(params={"city": "Ulm"})
    assert instance.refresh().generation == 1


def test_none_is_a_value_like_any_other() -> None:
    @workflow
    async def optional(step: WorkflowStep, to: Address | None) -> str:
        return "nowhere" if to is None else to.city

    instance = ended(optional.start({"city": "Bonn"}))
    instance.restart(params=None)
    assert ended(instance).output == "nowhere"
    assert snapshot(instance, 1).instance.params == {"city": "Bonn"}


def test_the_database_lets_params_change_with_the_generation_only() -> None:
    instance = ended(declare().start({"city": "Bonn"}))
    with (
        pytest.raises(DatabaseError, match="never change"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE engine_instance SET params = '1' WHERE key = %s", [instance.key])


def test_the_index_of_search_paths_follows() -> None:
    ship = declare(search=["city"])
    paths.register()
    instance = ended(ship.start({"city": "Bonn"}))

    def found() -> list[str | None]:
        return list(SearchValue.objects.filter(instance_id=instance.key).values_list("text", flat=True))

    assert found() == ["Bonn"]
    instance.restart(params={"city": "Ulm"})
    assert found() == ["Ulm"]
