"""`order`: a real stock and a real ledger, and what happens to them when an order fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import call_command

from engine import InvalidParamsError, NonRetryableError, RollbackContext, StepContext, workflows
from engine.declare.context import StepLog
from engine.declare.registry import Workflow
from engine.models import Attempt, Instance, Step
from engine.values.identity import StepIdentity
from engine.values.retry import StepOptions
from studio.demo.order import workflow as shop
from studio.demo.order.models import LedgerEntry, Reservation, Stock
from tests import shifts
from tests.faults.points import violations
from tests.records import outcomes
from tests.shifts import running_shift, wait_for

Order = Workflow[Any, Any]
QUICK = {"packing": 0}


@pytest.fixture
def order(engine_db: None, settings: LazySettings) -> Iterator[Order]:
    """The workflow, with the tables of its app."""
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "studio.demo"]
    call_command("migrate", "demo", verbosity=0)
    import_module("studio.demo.workflows")
    yield workflows["order"]
    assert violations() == []
    call_command("migrate", "demo", "zero", verbosity=0)


def run(order: Order, **params: Any) -> Instance:
    instance = order.start(QUICK | params)
    with running_shift():
        return wait_for(instance)


def available(sku: str = "teapot") -> int:
    return Stock.objects.get(sku=sku).available


def balance(order: str) -> int:
    return sum(LedgerEntry.objects.filter(order=order).values_list("cents", flat=True))


def test_an_order_takes_from_the_stock_what_is_paid_for(order: Order) -> None:
    instance = run(order, quantity=3, customer="Grace")
    assert instance.status == "complete", instance.error
    tracking = instance.output.pop("tracking")
    assert instance.output == {"sku": "teapot", "quantity": 3, "paid": 13_500, "left": 97}
    assert tracking.startswith("RP-")
    assert (available(), balance(instance.id)) == (97, 13_500)
    assert list(LedgerEntry.objects.values_list("text", "cents")) == [("Grace pays", 13_500)]
    assert Reservation.objects.get().state == "shipped"


def test_orders_side_by_side_sell_nothing_twice(order: Order) -> None:
    Stock.objects.create(sku="cup", available=100)
    instances = order.start_many([{"params": QUICK | {"sku": "cup", "quantity": 2}}] * 12).created
    with running_shift():
        for instance in instances:
            wait_for(instance)
    assert {instance.status for instance in instances} == {"complete"}
    assert (available("cup"), Reservation.objects.count()) == (76, 12)
    assert sorted(instance.output["left"] for instance in instances) == list(range(76, 100, 2))


def test_a_reservation_that_fails_at_its_end_takes_nothing(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, really_reserve = [], shop.reserve

    def reserve(sku: str, quantity: int, ctx: StepContext) -> shop.Reserved:
        tried.append(ctx.attempt)
        reserved = really_reserve(sku, quantity, ctx)
        if ctx.attempt == 1:
            raise ConnectionError("everything but the commit was done")
        return reserved

    monkeypatch.setattr(shop, "reserve", reserve)
    instance = run(order)
    assert (outcomes(instance, "reserve"), tried) == (["errored", "complete"], [1, 2])
    assert (available(), Reservation.objects.count()) == (98, 1)


def rolled_back(instance: Instance) -> list[str]:
    """Return the steps that were rolled back, in that order."""
    undone = Attempt.objects.filter(instance=instance, phase="rollback", status="complete").order_by(
        "started_at"
    )
    names = dict(Step.objects.filter(instance=instance).values_list("seq", "name"))
    return [names[attempt.step_seq] for attempt in undone]


def test_a_declined_card_puts_the_articles_back(order: Order) -> None:
    instance = run(order, fails="charge")
    assert (instance.status, instance.rollback) == ("errored", "complete")
    assert (instance.error["type"], instance.error["step"]) == ("CardDeclinedError", "charge")
    assert rolled_back(instance) == ["charge", "reserve"]
    assert (available(), Reservation.objects.get().state) == (100, "released")
    assert LedgerEntry.objects.count() == 0


def test_a_courier_that_does_not_come_undoes_the_order(order: Order) -> None:
    instance = run(order, fails="shipping")
    assert (instance.status, instance.rollback) == ("errored", "complete")
    assert (instance.error["type"], instance.error["step"]) == ("CourierError", "ship")
    assert len(outcomes(instance, "charge")) == 2  # once to pay and once to pay back
    assert rolled_back(instance) == ["charge", "reserve"]
    assert (available(), Reservation.objects.get().state) == (100, "released")
    assert list(LedgerEntry.objects.order_by("at").values_list("cents", flat=True)) == [9000, -9000]


def test_an_order_that_is_terminated_with_its_rollbacks_leaves_nothing(order: Order) -> None:
    instance = order.start({"packing": 600})
    with shifts.running_shift():
        shifts.wait_for(instance, "waiting")
        assert available() == 98
        instance.terminate(rollback=True)
        shifts.wait_for(instance)
    assert (instance.status, instance.rollback) == ("terminated", "complete")
    assert (available(), balance(instance.id)) == (100, 0)


@pytest.fixture
def undo() -> RollbackContext:
    said: list[str] = []
    return RollbackContext(
        attempt=1,
        name="a step",
        count=1,
        options=StepOptions(),
        instance_id="order-1",
        workflow="order",
        generation=1,
        log=StepLog(lambda level, message, fields: said.append(message)),
        path=(StepIdentity(0, "do", "a step", 1),),
    )


def test_what_was_reserved_is_put_back_once_however_often_it_is_asked_for(
    order: Order, undo: RollbackContext
) -> None:
    shop.release(undo)  # nothing was reserved yet
    shop.fill_shelves("teapot")
    shop.reserve("teapot", 7, undo)
    assert available() == 93
    for _ in range(2):
        shop.release(undo)
        assert (available(), Reservation.objects.get().state) == (100, "released")


def test_what_was_paid_is_given_back_once_however_often_it_is_asked_for(
    order: Order, undo: RollbackContext
) -> None:
    shop.refund(undo)
    assert LedgerEntry.objects.count() == 0
    for _ in range(2):
        assert shop.charge("Ada", 900, False, undo) == 900
    assert balance(undo.instance_id) == 900
    later = replace(undo, name="its rollback", path=(StepIdentity(0, "do", "its rollback", 1),))
    for _ in range(2):
        shop.refund(later)
        assert balance(undo.instance_id) == 0
    assert LedgerEntry.objects.count() == 2


def test_nothing_is_sold_that_is_not_there(order: Order, undo: RollbackContext) -> None:
    Stock.objects.create(sku="kettle", available=1)
    with pytest.raises(NonRetryableError, match="fewer than 2 of kettle"):
        shop.reserve("kettle", 2, undo)
    assert (available("kettle"), Reservation.objects.count()) == (1, 0)


def test_an_article_that_the_shop_does_not_have_is_refused_at_the_start(order: Order) -> None:
    with pytest.raises(InvalidParamsError):
        order.start({"sku": "elephant"})
