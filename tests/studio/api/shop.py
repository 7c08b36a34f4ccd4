"""A shop with instances in all the states that operations of the API need: one for each, made by the engine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

from pydantic import BaseModel, Field

from engine import RollbackContext, StepContext, WorkflowStep, bulk, failures, pauses, workflow
from engine.jobs import actions
from engine.models import Instance, ScheduleRow
from engine.steer.lifecycle import pause
from engine.steer.restart import restart
from engine.testing import WorkflowTest
from engine.version import VERSION
from tests.studio import factories

NOW = datetime(2026, 11, 24, 9, 0, tzinfo=UTC)
OLD_CODE = "0123456789abcdef"
NO_PAPER, NO_MAIL = "658f7559b6222a31", "5652a3233e7629b3"  # the fingerprints of two groups of errors


class Line(BaseModel):
    sku: str = Field(min_length=1)
    quantity: int = Field(gt=0)


class Order(BaseModel):
    """What a customer wants."""

    customer: str
    lines: list[Line] = Field(min_length=1)


class Payment(BaseModel):
    amount: float
    is_accepted: bool = True


class Decision(BaseModel):
    """What becomes of a refund."""

    refund: bool = Field(title="Refund it")


ORDER: dict[str, Any] = {"customer": "Ana", "lines": [{"sku": "lamp-7", "quantity": 2}]}
PAID: dict[str, Any] = {"amount": 49.8, "is_accepted": True}


def reserve(lines: list[Line], ctx: StepContext) -> str:
    ctx.log.info("reserved", pieces=sum(line.quantity for line in lines))
    return "shelf 7"


def print_it(customer: str) -> str:
    if customer in ("Cy", "Di"):
        raise OSError("The printer is out of paper.")
    return f"JD0{len(customer)}7"


def release(ctx: RollbackContext) -> None:
    raise ConnectionError("The warehouse does not answer.")


def mail() -> None:
    raise ConnectionError("The mail server does not answer.")


def declare() -> None:
    """Declare the workflows of the shop, as its code would."""

    @workflow("print-label")
    async def print_label(step: WorkflowStep, customer: str) -> str:
        """Print the label of a parcel."""
        # Somebody looks at the labels of this customer.
        waits = "pause" if customer == "Di" else "fail"
        return await step.do("print", print_it, customer, max_attempts=1, on_exhausted=waits)

    @workflow("ship-order", on_code_change="pause")
    async def ship_order(step: WorkflowStep, order: Order) -> dict[str, str]:
        """Reserve the goods, wait for the payment, and ship them."""
        shelf = await step.do(
            "reserve", reserve, order.lines, rollback=release, rollback_options={"max_attempts": 1}
        )
        paid = await step.wait_for_event("payment", "payment-received", timeout="7 days")
        if not Payment.model_validate(paid.payload).is_accepted:
            await step.fail("The card was declined.")
        label = await step.run_workflow("label", print_label, order.customer)
        return {"shelf": shelf, "tracking": label}

    @workflow("refund")
    async def refund(step: WorkflowStep, order: str) -> bool:
        """Ask whether a customer gets the money back."""
        answer = await step.request("decide", Decision, message=f"Refund order {order}?", timeout="2 days")
        return answer.value.refund

    @workflow("send-receipt")
    async def send_receipt(step: WorkflowStep, order: str) -> None:
        """Mail a receipt."""
        await step.do("mail", mail, delay="1 hour", max_delay="1 hour", jitter=0)

    @workflow("remind")
    async def remind(step: WorkflowStep, order: str) -> None:
        """Remind a customer after a week."""
        await step.sleep("a week", "7 days")

    @workflow("sales-report")
    async def sales_report(step: WorkflowStep, days: int) -> str:
        """Report what was sold."""
        return f"{days} days"


@dataclass(frozen=True, slots=True)
class Shop:
    """The instances, by what can be done to them."""

    waiting: Instance
    paused: Instance
    complete: Instance
    changed: Instance
    undone: Instance
    asking: Instance
    failed: Instance
    retrying: Instance
    sleeping: Instance


def open_shop(test: WorkflowTest) -> Shop:
    """Start the instances and run each as far as it goes."""
    from engine import workflows

    ship, refund = workflows["ship-order"], workflows["refund"]
    paid = {"type": "payment-received", "dedup_key": "ch_81"}

    complete = ship.start(ORDER, id="order-1041", tags=["eu"], by="zoe")
    test.run(complete)
    test.time.travel("2 minutes")
    complete = restart(complete.refresh(), by="ana", reason="The shelf was wrong.")
    test.run(complete)
    test.time.travel("3 minutes")
    complete.send_event(payload=PAID, by="bank", **paid)
    assert test.run(complete).status == "complete", complete.status

    undone = ship.start({**ORDER, "customer": "Bo"}, id="order-1038", by="zoe")
    test.run(undone)
    test.time.travel("1 minute")
    undone.send_event(payload={**PAID, "is_accepted": False}, by="bank", **paid)
    assert test.run(undone).rollback == "failed", undone.rollback

    waiting = ship.start(ORDER, id="order-1042", tags=["eu", "priority"], by="zoe")
    assert test.run(waiting).status == "waiting", waiting.status
    test.time.travel("1 minute")
    paused = ship.start(ORDER, id="order-1039", by="zoe")
    test.run(paused)
    paused = pause(paused.refresh(), by="ana", reason="The customer has called.")

    asking = refund.start("order-1017", id="refund-7", by="zoe")
    assert test.run(asking).status == "waiting", asking.status

    failed = workflows["print-label"].start("Cy", id="label-3", by="zoe")
    assert test.run(failed).status == "errored", failed.status
    for label in ("label-4", "label-5"):
        exhausted = workflows["print-label"].start("Di", id=label, by="zoe")
        assert test.run(exhausted).status == "paused", exhausted.status
    retrying = workflows["send-receipt"].start("order-1016", id="receipt-3", by="zoe")
    assert test.run(retrying).waiting_for == "retry", retrying.waiting_for
    failures.resolve(NO_PAPER, by="ana", reason="There is paper again.")
    sleeping = workflows["remind"].start("order-1015", id="remind-5", by="zoe")
    assert test.run(sleeping).waiting_for == "sleep", sleeping.waiting_for

    changed = factories.instance(
        "paused",
        workflow="ship-order",
        id="order-1037",
        params=ORDER,
        code=OLD_CODE,
        created_at=NOW,
        started_at=NOW,
        pause_reason={
            "type": "CodeChangedError",
            "message": "The code of workflow ship-order has changed.",
            "details": {},
            "traceback": "",
        },
    )
    _schedule("weekly", "0 9 * * 1", params=7, next_at=NOW + timedelta(days=6))
    _schedule("yearly", "0 9 2 1 *", params=365, next_at=None, paused_at=NOW, paused_by="ana")
    factories.worker(
        ["ship-order", "refund"],
        name="web-1:4711",
        worker_id=4711,
        started_at=NOW - timedelta(hours=1),
        seen_at=NOW,
        **_OF_CLUSTER,
    )
    factories.worker(
        ["ship-order", "refund"],
        name="web-1:4712",
        worker_id=4712,
        started_at=NOW - timedelta(hours=1),
        seen_at=NOW,
        drained_at=NOW,
        drained_by="ana",
        drain_reason="It swaps.",
        **_OF_CLUSTER,
    )
    workflows["sales-report"].start(7, id="report-47", by="zoe")
    pauses.pause("sales-report", by="ana", reason="The books are being closed.")
    _bulk_jobs(test)
    return Shop(waiting, paused, complete, changed, undone, asking, failed, retrying, sleeping)


def _refused(instance: Instance, **options: Any) -> None:
    raise PermissionError("A trigger of the database refuses it.")


def _bulk_jobs(test: WorkflowTest) -> None:
    """Start three jobs: one has ended and left a failure, one is paused, and one is about to begin."""
    why = "The figures were wrong."
    ended = bulk.start("restart", "id:label-3", id="labels-again", by="ana", reason=why)
    with patch.dict(actions._FUNCTIONS, {"restart": _refused}):
        test.run_to_end(Instance.objects.get(workflow="reprise.bulk", id=ended.id))
    assert bulk.get(ended.id).failed == 1
    bulk.start("resume", "workflow:ship-order status:paused", id="orders-go-on", by="ana")
    bulk.pause("orders-go-on", by="ana", reason="The courier called again.")
    bulk.start("retry", "workflow:send-receipt", id="receipts-now", by="ana", reason="Mail works again.")


_OF_CLUSTER = {
    "cluster": "web-1:4700",
    "cluster_id": -4700,
    "version": VERSION,
    "code": "a1b9f3c",
    "memory": 121_634_816,
}


def _schedule(name: str, expression: str, **given: Any) -> None:
    fields = {"workflow": "sales-report", "timezone": "Europe/Berlin", "name": name, "expression": expression}
    ScheduleRow.objects.create(**fields, **given)
