"""The money: charged, and given back."""

from __future__ import annotations

from django.db.models import Sum

from engine import NonRetryableError, RollbackContext, StepContext
from studio.demo.order.models import LedgerEntry


class CardDeclinedError(NonRetryableError):
    """The customer's bank says no; it will say so again."""


def charge(customer: str, cents: int, is_declined: bool, ctx: StepContext) -> int:
    """Charge the customer, as one would at a payment service: with a key by which it knows a repeated request.

    Not atomic: a service has no part in our transaction. The same key on every attempt makes it one payment all the
    same.
    """
    if is_declined:
        raise CardDeclinedError(f"The card of {customer} was declined.")
    entry, is_new = LedgerEntry.objects.get_or_create(
        key=ctx.idempotency_key,
        defaults={"order": ctx.instance_id, "cents": cents, "text": f"{customer} pays"},
    )
    if not is_new:
        ctx.log.info("had been charged by an attempt before this one")
    return entry.cents


def refund(ctx: RollbackContext) -> None:
    """Give back what was paid for the order: the rollback of `charge`.

    It asks the ledger, and not the step's output: the attempt that paid may have been lost before it could say so. Its
    own key makes it one refund.
    """
    paid = balance(ctx.instance_id)
    if paid <= 0:
        ctx.log.info("nothing was paid, or all of it is given back")
        return
    LedgerEntry.objects.get_or_create(
        key=ctx.idempotency_key, defaults={"order": ctx.instance_id, "cents": -paid, "text": "refund"}
    )
    ctx.log.info("refunded", cents=paid)


def balance(order: str) -> int:
    """Return what has been paid for an order, less what was given back."""
    return LedgerEntry.objects.filter(order=order).aggregate(cents=Sum("cents"))["cents"] or 0
