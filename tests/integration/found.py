"""Instances of a small business in many states, made by the engine, and what a search must find among them."""

from __future__ import annotations

from typing import Any

from engine import WorkflowStep, workflow
from engine.models import Instance
from engine.steer.indexing import paths
from engine.testing import WorkflowTest


def declare() -> dict[str, Any]:
    @workflow("orders", search=["region", "total", "output.paid"])
    async def orders(step: WorkflowStep, order: dict[str, Any]) -> dict[str, Any]:
        await step.do("reserve", lambda: None)
        if order.get("fails"):
            await step.do("charge", _fail, order["fails"], max_attempts=1)
        if order.get("retries"):
            await step.do("charge", _fail, order["retries"], max_attempts=9, delay="1h")
        if order.get("sleeps"):
            await step.sleep("rest", "1 day")
        if order.get("waits"):
            await step.listen("payment")
        return {"paid": order.get("total"), "note": order.get("note")}

    @workflow("refund")
    async def refund(step: WorkflowStep, order: dict[str, Any]) -> bool:
        answer = await step.request("decide", bool, message="Refund it?")
        return answer.value

    return {"orders": orders, "refund": refund}


def _fail(message: str) -> None:
    raise ConnectionError(message)


def make(test: WorkflowTest, count: int = 1) -> list[Instance]:
    """Make instances of each kind, so many times, in an order that mixes them."""
    known = declare()
    paths.register()
    for n in range(count):
        for kind, (name, params, tags, by) in enumerate(KINDS):
            given = params | {"n": n, "kind": kind}
            instance = known[name].start(given, id=f"{name}-{kind}-{n}", tags=tags, by=by or None)
            test.run(instance)
            test.time.travel("7 minutes")
    ended = Instance.objects.filter(status="complete").first()
    assert ended is not None
    test.run(ended.restart(by="ana", reason="again"))
    paused = Instance.objects.filter(waiting_for="event").exclude(workflow="refund").first()
    assert paused is not None
    paused.pause(by="ana")
    ending = Instance.objects.filter(waiting_for="sleep").first()
    assert ending is not None
    if count > 1:
        ending.terminate(by="ana", reason="not needed")
    known["orders"].start({"region": "eu"}, id="Queued-1", by="Ben")
    return list(Instance.objects.order_by("-key"))


KINDS: list[tuple[str, dict[str, Any], list[str], str]] = [
    ("orders", {"region": "eu", "total": 100, "note": "quick"}, ["eu", "vip"], "ana"),
    ("orders", {"region": "us", "total": 99.5, "note": "100 %_\\"}, [], "Ana"),
    (
        "orders",
        {"region": "eu", "total": "100", "sub": {"list": [{"sku": "a-1"}, {"sku": None}]}},
        ["eu"],
        "ben",
    ),
    ("orders", {"region": "eu-west", "total": 1e3, "fails": "The provider timed out."}, ["late"], "shop"),
    ("orders", {"region": None, "total": True, "retries": "The provider timed out, again."}, [], "shop"),
    ("orders", {"region": {"code": 1}, "sleeps": True, "note": "<b>&amp;"}, ["eu-west"], "shop"),
    ("orders", {"waits": True, "total": -5, "day": "2026-11-01"}, [], ""),
    ("refund", {"of": "orders-0-0", "day": "2026-11-20"}, ["vip"], "zoe"),
]
