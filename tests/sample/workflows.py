"""Workflows that tests start: each shows one thing that a workflow can do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

from pydantic import BaseModel, Field

from engine import Event, WorkflowStep, workflow


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
async def listen_for(step: WorkflowStep, params: list[str]) -> list[object]:
    """Wait for one event of each type, in order."""
    return [(await step.wait_for_event(event_type)).payload for event_type in params]


def reserve(items: list[Item]) -> int:
    return sum(item.quantity for item in items)


def one() -> int:
    return 1
