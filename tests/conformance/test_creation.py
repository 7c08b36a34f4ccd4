"""Starting instances, by id or not, one by one or many."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction

from engine import (
    InstanceExistsError,
    InstanceNotFoundError,
    InvalidNameError,
    InvalidParamsError,
    WorkflowStep,
    workflow,
)
from engine.declare.registry import Workflow
from engine.models import Instance
from tests import shifts
from tests.records import steps
from tests.stories import run_to_end, running_shift, wait_for


@dataclass
class Order:
    sku: str
    quantity: int = 1


@pytest.fixture
def order(own_registry: None) -> Workflow[Any, Any]:
    @workflow
    async def order(step: WorkflowStep, params: Order) -> int:
        return await step.do("take", lambda: params.quantity)

    return order


def test_an_id_in_use_is_refused_and_skipped_by_a_batch(order: Workflow[Any, Any]) -> None:
    """CF-77"""
    order.start({"sku": "a"}, id="one")
    with pytest.raises(InstanceExistsError):
        order.start({"sku": "b"}, id="one")
    result = order.start_many(
        [{"id": given, "params": {"sku": "c"}} for given in ("one", "two", "two", "a b")]
    )
    assert [row.id for row in result.created] == ["two"]
    assert [(error["index"], error["code"]) for error in result.errors] == [
        (0, "id_in_use"),
        (2, "id_in_use"),
        (3, "invalid_name"),
    ]
    assert Instance.objects.count() == 2


@pytest.mark.parametrize("id", ["_ok", "9ok", "x" * 100, "A-_9"])
def test_a_valid_id(order: Workflow[Any, Any], id: str) -> None:
    """CF-79"""
    assert order.start({"sku": "a"}, id=id).id == id


@pytest.mark.parametrize("id", ["-x", "a b", "", "é", "a\n", "x" * 101, "bad:id"])
def test_an_invalid_id(order: Workflow[Any, Any], id: str) -> None:
    """CF-79, LC-44"""
    with pytest.raises(InvalidNameError):
        order.start({"sku": "a"}, id=id)
    assert Instance.objects.count() == 0


def test_start_returns_before_the_handler_runs(order: Workflow[Any, Any]) -> None:
    """CF-80"""
    may_run = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> bool:
        return await step.do("look", lambda: may_run.wait(60))

    with shifts.running_shift():
        instance = story.start()
        assert instance.status == "queued"
        assert instance.refresh().status in ("queued", "running")
        may_run.set()
        shifts.wait_for(instance)
    assert instance.output is True


def test_params_that_do_not_fit_start_nothing(order: Workflow[Any, Any]) -> None:
    """KC-38"""
    with pytest.raises(InvalidParamsError) as caught:
        order.start({"sku": 1, "quantity": "many"})
    assert [error["path"] for error in caught.value.errors] == ["sku", "quantity"]
    assert Instance.objects.count() == 0


def test_a_second_call_returns_the_live_instance_and_the_finished_one_too(order: Workflow[Any, Any]) -> None:
    """KC-43: ours keeps the finished one, and never starts a second of its id"""
    first, created = order.get_or_start("one", {"sku": "a", "quantity": 3})
    again, created_again = order.get_or_start("one", {"sku": "b"})
    assert (created, created_again, again.key) == (True, False, first.key)
    run_to_end(first)
    finished, created_later = order.get_or_start("one", {"sku": "c"})
    assert (created_later, finished.status, finished.output) == (False, "complete", 3)


def test_a_start_in_a_transaction_that_fails_never_was(order: Workflow[Any, Any]) -> None:
    """LC-37: ours starts on commit"""

    class Oops(Exception):
        pass

    @transaction.atomic
    def start_and_fail() -> None:
        order.start({"sku": "a"}, id="one")
        raise Oops

    with running_shift():
        with pytest.raises(Oops):
            start_and_fail()
        other = wait_for(order.start({"sku": "a"}, id="two"))
    assert list(Instance.objects.all()) == [other]
    with pytest.raises(InstanceNotFoundError):
        order.get("one")


def test_a_start_in_a_body_starts_with_the_bodys_commit(order: Workflow[Any, Any]) -> None:
    """Guarantee 19: with the ORM, from inside a step"""

    @workflow
    async def parent(step: WorkflowStep) -> list[str]:
        def begin() -> str:
            with transaction.atomic():
                return order.start({"sku": "a", "quantity": 2}).id

        async def abegin() -> str:
            return (await order.astart({"sku": "b", "quantity": 5})).id

        return [await step.do("begin", begin), await step.do("abegin", abegin)]

    with running_shift():
        parent_row = wait_for(parent.start())
        outputs = [wait_for(order.get(child)).output for child in parent_row.output]
    assert outputs == [2, 5]


def test_the_handler_sees_its_params_as_their_type(order: Workflow[Any, Any]) -> None:
    seen: list[Any] = []

    @workflow
    async def story(step: WorkflowStep, params: Order) -> str:
        seen.append((params, step.instance_id, step.workflow))
        return params.sku

    instance = run_to_end(story.start(Order("a"), id="one"))
    assert (instance.output, instance.params) == ("a", {"sku": "a", "quantity": 1})
    assert seen == [(Order("a", 1), "one", "story")]
    assert steps(instance) == []
