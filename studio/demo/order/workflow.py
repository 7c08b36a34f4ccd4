"""The workflow `order`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from engine import WorkflowStep, workflow
from studio.demo.order import courier, ledger, stock

NAME = "order"

SHORT = {"max_attempts": 5, "delay": "1s", "timeout": "30s"}
COURIER = {"max_attempts": 3, "delay": "1s", "backoff": "constant", "timeout": "30s"}


class OrderParams(BaseModel):
    """Who buys what, and where it goes wrong."""

    customer: str = Field("Ada", min_length=1, max_length=60, description="Who pays.")
    sku: Literal["teapot", "cup", "kettle"] = Field("teapot", description="What is bought.")
    quantity: int = Field(2, ge=1, le=20, description="How many.")
    packing: float = Field(3, ge=0, le=600, description="Seconds that it takes to pack the parcel.")
    fails: Literal["nowhere", "charge", "shipping"] = Field(
        "nowhere", description="Where the order fails, to see what has happened before rolled back."
    )


class OrderReport(BaseModel):
    """How the order ended. Amounts are in cents; `left` is what others can still buy."""

    sku: str
    quantity: int
    paid: int
    left: int
    tracking: str


@workflow(NAME, timeout="1 day")
async def order(step: WorkflowStep, params: OrderParams) -> OrderReport:
    """Sell something from a real stock, and undo it all if it cannot be paid for or shipped.

    The stock goes down and the articles are put aside in one transaction with the step itself (atomic), so that it
    happens exactly once, whichever worker dies. The customer is charged in a ledger, the parcel is packed and handed
    to a courier. Start it with fails = shipping: when the courier has not come three times, the customer is refunded
    and the articles go back to the shelves, in this order.
    """
    await step.do("fill-shelves", stock.fill_shelves, params.sku, **SHORT)
    reserved = await step.do(
        "reserve",
        stock.reserve,
        params.sku,
        params.quantity,
        atomic=True,
        rollback=stock.release,
        rollback_options=SHORT,
        **SHORT,
    )
    paid = await step.do(
        "charge",
        ledger.charge,
        params.customer,
        reserved.cents,
        params.fails == "charge",
        rollback=ledger.refund,
        rollback_options=SHORT,
        **SHORT,
    )
    await step.progress(f"{params.customer} has paid {paid / 100:,.2f}", 50)
    await step.sleep("packing", params.packing)
    tracking = await step.do("ship", courier.ship, params.fails == "shipping", atomic=True, **COURIER)
    await step.progress(f"{reserved.quantity} {reserved.sku} on the way as {tracking}", 100)
    return OrderReport(
        sku=reserved.sku, quantity=reserved.quantity, paid=paid, left=reserved.left, tracking=tracking
    )
