"""The workflow `order`: atomic steps, idempotent requests, and rollbacks."""

from typing import Literal

from django.db.models import F, Sum
from pydantic import BaseModel, Field

from engine import NonRetryableError, RollbackContext, StepContext, WorkflowStep, workflow
from studio.demo.order.models import LedgerEntry, Reservation, Stock

PRICES = {"teapot": 4500, "cup": 1200, "kettle": 6900}  # cents


class OrderParams(BaseModel):
    """Who buys what, and where it goes wrong."""

    customer: str = Field("Ada", min_length=1, max_length=60, description="Who pays.")
    sku: Literal["teapot", "cup", "kettle"] = Field("teapot", description="The article to buy.")
    quantity: int = Field(2, ge=1, le=20, description="How many to buy.")
    packing: float = Field(3, ge=0, le=600, description="How many seconds packing takes.")
    fails: Literal["nowhere", "charge", "shipping"] = Field("nowhere", description="Where the order fails.")


class Reserved(BaseModel):
    sku: str
    quantity: int
    cents: int  # the price of all of them
    left: int


class OrderReport(BaseModel):
    sku: str
    quantity: int
    paid: int  # cents
    left: int  # what others can still buy
    tracking: str


class CardDeclinedError(NonRetryableError):
    """The bank refuses the payment. It would refuse it again."""


class CourierError(Exception):
    """No courier came. One may come later, so the step is tried again."""


@workflow("order", timeout="1 day", defaults={"max_attempts": 5, "delay": "1s", "timeout": "30s"})
async def order(step: WorkflowStep, params: OrderParams) -> OrderReport:
    """Sell an article from stock; undo everything if it cannot be paid for or shipped.

    Reserves the articles exactly once, in one transaction with the step (atomic), then charges the customer, packs
    the parcel and calls a courier. Start it with fails = shipping: after three attempts without a courier, the
    customer is refunded and the articles go back to the stock.
    """
    sku, quantity = params.sku, params.quantity
    await step.do("fill-shelves", fill_shelves, sku)
    reserved = await step.do("reserve", reserve, sku, quantity, atomic=True, rollback=release)
    is_declined = params.fails == "charge"
    paid = await step.do("charge", charge, params.customer, reserved.cents, is_declined, rollback=refund)
    await step.progress(f"{params.customer} has paid {paid / 100:,.2f}", 50)
    await step.sleep("packing", params.packing)
    has_no_courier = params.fails == "shipping"
    tracking = await step.do("ship", ship, has_no_courier, atomic=True, max_attempts=3)
    await step.progress(f"{quantity} {sku} on the way as {tracking}", 100)
    return OrderReport(sku=sku, quantity=quantity, paid=paid, left=reserved.left, tracking=tracking)


def fill_shelves(sku: str) -> int:
    """Refill the stock when it is low, so that the demo can run forever. Running it twice is safe."""
    Stock.objects.get_or_create(sku=sku, defaults={"available": 0})
    Stock.objects.filter(sku=sku, available__lt=20).update(available=F("available") + 100)
    return Stock.objects.get(sku=sku).available


def reserve(sku: str, quantity: int, ctx: StepContext) -> Reserved:
    """Take articles from the stock. Atomic: both writes and the step's result are one transaction."""
    if not Stock.objects.filter(sku=sku, available__gte=quantity).update(available=F("available") - quantity):
        raise NonRetryableError(f"There are fewer than {quantity} of {sku} left.")
    Reservation.objects.create(order=ctx.instance_id, sku=sku, quantity=quantity)
    left = Stock.objects.get(sku=sku).available
    return Reserved(sku=sku, quantity=quantity, cents=PRICES[sku] * quantity, left=left)


def release(ctx: RollbackContext) -> None:
    """Put back what is still reserved, if anything. The rollback of an atomic step is atomic, too."""
    reservation = Reservation.objects.filter(order=ctx.instance_id, state="reserved").first()
    if reservation is not None:
        Stock.objects.filter(sku=reservation.sku).update(available=F("available") + reservation.quantity)
        Reservation.objects.filter(order=reservation.order).update(state="released")


def charge(customer: str, cents: int, is_declined: bool, ctx: StepContext) -> int:
    """Charge the customer. The key is the same on every attempt, so a repeated one charges nothing more."""
    if is_declined:
        raise CardDeclinedError(f"The card of {customer} was declined.")
    entry = {"order": ctx.instance_id, "cents": cents, "text": f"{customer} pays"}
    LedgerEntry.objects.get_or_create(key=ctx.idempotency_key, defaults=entry)
    return cents


def refund(ctx: RollbackContext) -> None:
    """Refund what the ledger says was paid: an attempt may have charged and died before it returned."""
    paid = LedgerEntry.objects.filter(order=ctx.instance_id).aggregate(cents=Sum("cents"))["cents"]
    if paid:
        entry = {"order": ctx.instance_id, "cents": -paid, "text": "refund"}
        LedgerEntry.objects.get_or_create(key=ctx.idempotency_key, defaults=entry)


def ship(has_no_courier: bool, ctx: StepContext) -> str:
    """Hand the parcel to the courier; return its tracking number. It has no rollback: the parcel is gone."""
    if has_no_courier:
        raise CourierError("No courier came to fetch the parcel.")
    Reservation.objects.filter(order=ctx.instance_id).update(state="shipped")
    return f"RP-{ctx.idempotency_key[:8].upper()}"
