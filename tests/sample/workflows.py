"""Workflows that tests start: each shows one thing that a workflow can do."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date
from typing import Literal

from pydantic import BaseModel, Field

from engine import Event, StepContext, WorkflowStep, workflow


class Item(BaseModel):
    sku: str = Field(min_length=1)
    quantity: int = Field(gt=0)


class Order(BaseModel):
    """What the shop sends."""

    customer: str
    items: list[Item] = Field(min_length=1)
    ship_by: date | None = None
    priority: Literal["normal", "express"] = "normal"


@dataclass
class Approval:
    approved: bool
    comment: str = ""


order_approved = Event("order-approved", Approval)


@workflow(timeout="1 day")
async def process_order(step: WorkflowStep, params: Order) -> str:
    """Reserve the items, wait for somebody's approval, and ship."""
    reserved = await step.do("reserve", reserve, params.items)
    answer = await step.wait_for_event("approval", order_approved)
    if not answer.payload.approved:
        return "refused"
    await step.sleep("cool-down", "1s")
    return f"shipped {reserved} to {params.customer}"


@workflow
async def tick(step: WorkflowStep) -> int:
    """Count once; takes no params."""
    return await step.do("count", one)


@workflow
async def nap(step: WorkflowStep, params: dict[str, int]) -> None:
    """Sleep for `params["seconds"]`."""
    await step.sleep("nap", params["seconds"])


@workflow
async def snooze(step: WorkflowStep, params: dict[str, int]) -> None:
    """Keep a slot for `params["seconds"]`."""
    await step.do("snooze", asyncio.sleep, params["seconds"])


@workflow
async def listen_for(step: WorkflowStep, params: list[str]) -> list[object]:
    """Wait for one event of each type, in order."""
    return [(await step.wait_for_event(event_type)).payload for event_type in params]


@workflow
async def sort_letters(step: WorkflowStep, params: dict[str, int]) -> int:
    """Go through `params["letters"]`; the last of them is tried every second until the instance is sent an event."""

    def sort(letter: int, index: int, ctx: StepContext) -> int:
        if letter == params["letters"] and not has_event(ctx):
            raise ValueError("The address cannot be read.")
        return letter

    letters = range(1, params["letters"] + 1)
    return len(await step.map("letters", letters, sort, delay=1, backoff="constant", max_attempts=100))


def has_event(ctx: StepContext) -> bool:
    from engine.models import Event as SentEvent

    return SentEvent.objects.filter(instance__workflow=ctx.workflow, instance__id=ctx.instance_id).exists()


def reserve(items: list[Item]) -> int:
    return sum(item.quantity for item in items)


def one() -> int:
    return 1


class Refund(BaseModel):
    """What somebody decided about a refund."""

    refund: bool = Field(title="Refund it")
    amount: float = Field(ge=0, le=1240, description="In euro.")
    pay_by: Literal["card", "voucher"] = "card"


class Gate(BaseModel):
    """Who is asked, and what."""

    message: str
    assignees: list[str] = []
    timeout: str | None = None


@workflow
async def gate(step: WorkflowStep, params: Gate) -> str:
    """Ask people for a refund, and say what they decided."""
    given = await step.request(
        "decide", Refund, message=params.message, assignees=params.assignees, timeout=params.timeout
    )
    return f"{given.answered_by}: {given.value.refund} {given.value.amount} by {given.value.pay_by}"


class Address(BaseModel):
    street: str
    is_home: bool


class Addresses(BaseModel):
    """Two groups of fields that are called the same."""

    billing: Address
    shipping: Address


@workflow
async def ask_addresses(step: WorkflowStep) -> str:
    """Ask people where to send an invoice, and where its goods."""
    given = await step.request("addresses", Addresses, message="Where to?", timeout="7 days")
    return f"{given.value.billing.street}, {given.value.shipping.street}"


@workflow
async def stumble(step: WorkflowStep, params: dict[str, int]) -> None:
    """Try `params["attempts"]` times, a second or `params["delay"]` apart, and fail."""
    await step.do(
        "stumble", fall, max_attempts=params["attempts"], delay=params.get("delay", 1), backoff="constant"
    )


@workflow
async def wire(step: WorkflowStep) -> str:
    """Try twice, then leave it to a person what follows."""
    return await step.do("send", send, max_attempts=2, delay=0, on_exhausted="pause")


def send() -> str:
    raise ConnectionError("The bank does not answer.")


def fall() -> None:
    raise ValueError("There is a stone in the way.")
