"""The way to the customer."""

from __future__ import annotations

from engine import StepContext
from studio.demo.order.models import Reservation


class CourierError(Exception):
    """No courier came. It may be another day, so the step is tried again."""


def ship(is_stranded: bool, ctx: StepContext) -> str:
    """Hand the parcel over; return its tracking number.

    Atomic, as the reservation is: from here on the articles cannot be put back.
    """
    if is_stranded:
        raise CourierError("No courier came to fetch the parcel.")
    Reservation.objects.filter(order=ctx.instance_id).update(state="shipped")
    return f"RP-{ctx.idempotency_key[:8].upper()}"
