"""Changing a value changes neither the record nor the value that others get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from engine import RollbackContext, WorkflowStep, workflow
from engine.models import Step
from tests.stories import run_to_end


class AsDict(TypedDict):
    items: list[str]


class AsModel(BaseModel):
    items: list[str]


@dataclass
class AsDataclass:
    items: list[str]


def plain() -> Any:
    return {"items": ["as recorded"]}


def typed_dict() -> AsDict:
    return {"items": ["as recorded"]}


def model() -> AsModel:
    return AsModel(items=["as recorded"])


def of_dataclass() -> AsDataclass:
    return AsDataclass(items=["as recorded"])


def items_of(value: Any) -> list[str]:
    items: list[str] = value["items"] if isinstance(value, dict) else value.items
    return items


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("make", [plain, typed_dict, model, of_dataclass], ids=lambda make: make.__name__)
def test_what_is_done_to_an_output_stays_with_who_does_it(make: Callable[[], Any], atomic: bool) -> None:
    """Guarantee 1: live and on every replay, by the handler and by the body that keeps what it has returned."""
    kept: list[Any] = []
    seen: list[str] = []
    undone: list[list[str]] = []

    def body() -> Any:
        kept.append(make())
        return kept[-1]

    body.__annotations__["return"] = make.__annotations__["return"]

    def undo(ctx: RollbackContext) -> None:
        undone.append(items_of(ctx.output))

    @workflow
    async def story(step: WorkflowStep) -> None:
        first = await step.do("order", body, once=True, atomic=atomic, rollback=undo)
        items_of(first).append("by the handler")
        items_of(kept[-1]).append("by the body")
        second = await step.do("order", body, once=True, atomic=atomic, rollback=undo)
        seen.append(" | ".join(", ".join(items_of(one)) for one in (first, second)))
        await step.sleep("nap", 0.4)
        third = await step.do("order", body, once=True, atomic=atomic, rollback=undo)
        items_of(second).append("later")
        await step.fail(" | ".join(", ".join(items_of(one)) for one in (first, second, third)))

    instance = run_to_end(story.start())
    told = "as recorded, by the handler | as recorded, later | as recorded"
    assert (instance.error["message"], len(kept)) == (told, 1)
    assert set(seen) == {"as recorded, by the handler | as recorded"}
    assert undone == [["as recorded"]]
    assert Step.objects.get(instance=instance, name="order").output == {"items": ["as recorded"]}
