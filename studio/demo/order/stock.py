"""The shelves: what is taken from them and put back."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F
from pydantic import BaseModel

from engine import NonRetryableError, RollbackContext, StepContext
from studio.demo.order.models import Reservation, Stock

PRICES = {"teapot": 4500, "cup": 1200, "kettle": 6900}  # cents
LOW, DELIVERED = 20, 100


class OutOfStockError(NonRetryableError):
    """There are too few left, and waiting does not help."""


class Reserved(BaseModel):
    """What is put aside, what it costs, and how many are left for others."""

    sku: str
    quantity: int
    cents: int
    left: int


def fill_shelves(sku: str) -> int:
    """Have the wholesaler deliver when there are few left, so that the demo can be run again and again.

    Once filled, it does nothing: so it may run twice.
    """
    Stock.objects.get_or_create(sku=sku, defaults={"available": 0})
    Stock.objects.filter(sku=sku, available__lt=LOW).update(available=F("available") + DELIVERED)
    return Stock.objects.get(sku=sku).available


def reserve(sku: str, quantity: int, ctx: StepContext) -> Reserved:
    """Take the articles from the stock and put them aside for the order.

    Atomic: these two writes and the completion of the step are one transaction, so nothing here asks whether it has
    run before. A worker that is killed leaves either all of it or none.
    """
    taken = Stock.objects.filter(sku=sku, available__gte=quantity)
    if not taken.update(available=F("available") - quantity):
        raise OutOfStockError(f"There are fewer than {quantity} of {sku} left.")
    Reservation.objects.create(order=ctx.instance_id, sku=sku, quantity=quantity)
    left = Stock.objects.get(sku=sku).available
    return Reserved(sku=sku, quantity=quantity, cents=PRICES[sku] * quantity, left=left)


def release(ctx: RollbackContext) -> None:
    """Put back what was reserved: the rollback of `reserve`. What is back already, or was never taken, stays so."""
    with transaction.atomic():
        mine = Reservation.objects.select_for_update().filter(order=ctx.instance_id, state="reserved")
        for one in mine:
            Stock.objects.filter(sku=one.sku).update(available=F("available") + one.quantity)
            ctx.log.info("put back", sku=one.sku, quantity=one.quantity)
        mine.update(state="released")
