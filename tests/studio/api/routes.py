"""Every operation of the API, with a request that fits it."""

from __future__ import annotations

import re
from typing import Any

from engine.models import Instance
from studio import pages
from studio.api.operation import DECLARED, Declared

assert pages.urlpatterns, "imported: the operations are declared"

PATH_PART = re.compile(r"<\w+:(\w+)>")


def operations() -> dict[str, Declared]:
    """Return the operations by method and route, as in `POST workflows/<workflow:name>/instances`."""
    return {f"{one.method} {one.route}": one for one in DECLARED}


def address(one: Declared, instance: Instance) -> str:
    """Return the address of an operation below the prefix of the API, for an instance and its first step."""
    known = {"name": instance.workflow, "id": instance.id, "seq": 1, "what": "params", "schedule": "mornings"}
    known["fingerprint"] = "055ca78ed6e0157a"  # of factories.failure("process-order")
    known["worker"] = "host-1:1"
    known["job"] = "nightly"
    if "steps" in one.route:
        known["what"] = "output"
    return "/" + PATH_PART.sub(lambda part: str(known[part[1]]), one.route)


def body(one: Declared, instance: Instance) -> dict[str, Any] | None:
    """Return a body that the operation accepts; None for one that reads."""
    if one.method == "GET":
        return None
    last = one.route.rpartition("/")[2]
    if one.route == "events":
        return {"workflow": instance.workflow, "id": instance.id, "type": "paid"}
    if one.route.startswith("bulk-jobs") and last in ("bulk-jobs", "preview"):
        return {"action": "pause", "query": "workflow:process-order"}
    known: dict[str, dict[str, Any]] = {
        "batch": {"items": []},
        "events": {"type": "paid"},
        "answer": {"answer": {"refund": True, "amount": 3}},
        "preview": {},
        "fail-step": {"step": "reserve", "reason": "because"},
        "skip-step": {"step": "reserve", "reason": "because"},
        "notes": {"text": "They called."},
        "instances": {"params": {}},
    }
    return known.get(last, {"reason": "because"})
