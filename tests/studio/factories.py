"""Records as the engine would have written them, made directly through the models."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils import timezone

from engine.models import Attempt, Audit, Event, Instance, Log, Step, Worker

_numbers = count(1)
PASSWORD = "a long and plain password"

TRACE = """Traceback (most recent call last):
  File "/srv/venv/lib/python3.11/site-packages/httpx/_client.py", line 901, in send
    raise exc
  File "/srv/shop/provider.py", line 88, in post
    return self.session.post(url, json=body)
TimeoutError: no answer from the card service after 5 s"""
FAILURE = {
    "type": "TimeoutError",
    "message": "no answer from the card service after 5 s",
    "details": {},
    "traceback": TRACE,
}


def person(role: str = "operator", name: str | None = None) -> User:
    """Make somebody with a role; `nobody` has none, `root` is a superuser."""
    user = User.objects.create_user(
        name or f"{role}-{next(_numbers)}", password=PASSWORD, is_superuser=role == "root"
    )
    if role not in ("nobody", "root"):
        user.groups.add(Group.objects.get(name=role))
    return user


def ago(**span: float) -> datetime:
    return timezone.now() - timedelta(**span)


def instance(status: str = "queued", **given: Any) -> Instance:
    """Make an instance that satisfies every constraint of its status."""
    now = timezone.now()
    fields: dict[str, Any] = {
        "workflow": "orders",
        "id": f"order-{next(_numbers)}",
        "status": status,
        "params": {"order_id": 4711, "express": True},
        "created_at": now - timedelta(minutes=2),
        "started_by": "zoe",
    }
    if status != "queued":
        fields["started_at"] = now - timedelta(minutes=2) + timedelta(milliseconds=40)
    if status == "queued":
        fields["wake_at"] = now
    if status in ("running", "waiting_for_pause"):
        fields |= {"owner": 7, "wake_at": now + timedelta(seconds=30)}
    if status == "waiting":
        fields |= {"waiting_for": "event"}
    if status == "paused":
        fields |= {"paused_at": now - timedelta(minutes=1)}
    if status in ("complete", "errored", "terminated"):
        fields |= {"finished_at": now - timedelta(seconds=20)}
    if status == "complete":
        fields |= {"output": {"charged": True, "receipt": "r_81"}}
    if status == "errored":
        fields |= {"error": {**FAILURE, "step": "charge_card", "attempts": 5}}
    return Instance.objects.create(**(fields | given))


def step(of: Instance, name: str, status: str = "complete", kind: str = "do", **given: Any) -> Step:
    """Make the next step of an instance."""
    seq = Step.objects.filter(instance_id=of.key).count() + 1
    started = given.pop("started_at", of.created_at + timedelta(seconds=seq))
    fields: dict[str, Any] = {
        "instance_id": of.key,
        "generation": of.generation,
        "seq": seq,
        "kind": kind,
        "name": name,
        "count": 1,
        "status": status,
        "started_at": started,
        "options": {"max_attempts": 5, "delay": 1} if kind == "do" else None,
    }
    if status in ("complete", "errored", "cancelled"):
        fields |= {"finished_at": started + timedelta(seconds=0.8), "delivery": seq}
    if status == "complete" and kind == "do":
        fields |= {"output": {"hold": "h_81", "score": 0.03}}
    if status == "errored":
        fields |= {"error": FAILURE}
    if kind == "event":
        fields |= {"event_types": [name]}
    return Step.objects.create(**(fields | given))


REFUND: dict[str, Any] = {
    "type": "object",
    "title": "Refund",
    "properties": {
        "refund": {"type": "boolean", "title": "Refund it"},
        "amount": {"type": "number", "minimum": 0, "maximum": 1240, "title": "Amount"},
        "pay_by": {"enum": ["card", "voucher"], "type": "string", "default": "card", "title": "Pay by"},
        "note": {
            "anyOf": [{"type": "string", "maxLength": 80}, {"type": "null"}],
            "default": None,
            "title": "Note",
        },
    },
    "required": ["refund", "amount"],
}


def request(of: Instance, message: str = "Refund 1,240 € to ACME?", **given: Any) -> Step:
    """Make a request that waits, and what an instance that is parked on it has."""
    asked = {
        "message": message,
        "assignees": given.pop("assignees", ()),
        "schema": given.pop("schema", REFUND),
    }
    name, status = given.pop("name", "decide"), given.pop("status", "waiting")
    made = step(
        of, name, status, kind="request", options={**asked, "assignees": [*asked["assignees"]]}, **given
    )
    Step.objects.filter(pk=made.pk).update(event_types=[f"reprise:request:{of.generation}:{made.seq}"])
    made.refresh_from_db()
    return made


def attempt(of: Step, status: str = "complete", **given: Any) -> Attempt:
    """Make the next attempt at a step."""
    number = Attempt.objects.filter(instance_id=of.instance_id, step_seq=of.seq).count() + 1
    started = given.pop("started_at", of.started_at)
    fields: dict[str, Any] = {
        "instance_id": of.instance_id,
        "generation": of.generation,
        "step_seq": of.seq,
        "number": number,
        "status": status,
        "worker": "worker-2",
        "started_at": started,
    }
    if status != "running":
        fields["finished_at"] = started + timedelta(seconds=0.8)
    if status in ("errored", "timed_out"):
        fields["error"] = FAILURE
    Step.objects.filter(instance_id=of.instance_id, generation=of.generation, seq=of.seq).update(
        attempts=number
    )
    return Attempt.objects.create(**(fields | given))


def event(of: Instance, type: str = "order-approved", payload: Any = "thanks", **given: Any) -> Event:
    return Event.objects.create(
        **({"instance_id": of.key, "type": type, "payload": payload, "received_at": timezone.now()} | given)
    )


def log(of: Instance, message: str, **given: Any) -> Log:
    fields = {"instance_id": of.key, "generation": of.generation, "level": "info", "at": timezone.now()}
    return Log.objects.create(**(fields | {"message": message} | given))


def deed(of: Instance, verb: str, actor: str = "li", reason: str = "", **given: Any) -> Audit:
    fields = {"verb": verb, "actor": actor, "reason": reason, "workflow": of.workflow}
    return Audit.objects.create(**(fields | {"instance_id": of.id, "instance_key": of.key} | given))


def workers(workflows: list[str], *, count: int = 1, slots: int = 64, held: int = 0, **given: Any) -> None:
    """Make a living cluster with so many workers, each of which holds so many instances."""
    worker(workflows, role="cluster", slots=count * slots, **given)
    for _ in range(count):
        worker(workflows, slots=slots, held=held, **given)


def worker(workflows: list[str], **given: Any) -> Worker:
    """Make the row of a process that runs a shift, or of a cluster."""
    now, number = timezone.now(), next(_numbers)
    fields = {"role": "shift", "name": f"host-1:{4000 + number}", "seat": 100 + number, "slots": 64}
    return Worker.objects.create(
        **(fields | {"workflows": workflows, "started_at": now, "seen_at": now} | given)
    )


def retrying() -> Instance:
    """Make an instance whose second step failed three times and backs off."""
    now = timezone.now()
    found = instance("waiting", waiting_for="retry", wake_at=now + timedelta(seconds=95))
    first = step(found, "reserve_stock", started_at=ago(seconds=118))
    attempt(first)
    charge = step(
        found, "charge_card", "waiting", started_at=ago(seconds=100), wake_at=now + timedelta(seconds=95)
    )
    for seconds in (100, 80, 40):
        attempt(charge, "errored", started_at=ago(seconds=seconds))
    return found
