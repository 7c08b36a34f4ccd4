"""Records as the engine would have written them, made directly through the models.

What a test says nothing about is made up so that the record can be: the attempt of a step with a body, the wait of an
instance that waits, the row in the audit trail of who paused it. It gives way to what the test says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils import timezone

from engine import bulk
from engine.models import Attempt, Audit, Event, Failure, Instance, Log, Step, Worker
from engine.values.error_record import ErrorRecord
from engine.values.fingerprint import failed

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
    """Make a user in the default group of a role; `nobody` is in none, `root` is a superuser."""
    user = User.objects.create_user(
        name or f"{role}-{next(_numbers)}", password=PASSWORD, is_superuser=role == "root"
    )
    if role not in ("nobody", "root"):
        user.groups.add(Group.objects.get(name=f"reprise-{role}"))
    return user


def ago(**span: float) -> datetime:
    return timezone.now() - timedelta(**span)


def instance(status: str = "queued", *, by: str = "li", reason: str = "", **given: Any) -> Instance:
    """Make an instance. `by` is the user who paused or terminated it, if any."""
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
        fields |= {"started_at": now - timedelta(minutes=2) + timedelta(milliseconds=40), "fence": 9}
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
    made = Instance.objects.create(**(fields | given))
    if made.status == "waiting":
        _wait(made)
    own_reason = made.pause_reason if status == "paused" else made.error
    if (verb := _VERBS.get(status)) and by and own_reason is None:
        deed(made, verb, by, reason, after=status)
    return made


_VERBS = {"paused": "pause", "waiting_for_pause": "pause", "terminated": "terminate"}
_WAITS: dict[int, Step] = {}  # made up, by the instance: the last step of each
_ATTEMPTS: set[tuple[int, int, int]] = set()  # steps whose attempt is made up


def _wait(of: Instance) -> None:
    """Make up the step that an instance is parked on."""
    kind = {"sleep": "sleep", "retry": "do", "child": "child"}.get(of.waiting_for, "event")
    name = {"do": "charge_card", "event": "order-approved"}.get(kind, "wait")
    given: dict[str, Any] = {}
    if kind == "child":
        found = {"workflow": "billing", "id": f"inv-{of.key}"}
        given = {"options": {"operation": "run_workflow", **found}}
    made = _WAITS[of.key] = _step(of, name, "waiting", kind, wake_at=of.wake_at, **given)
    if kind == "child":
        instance("queued", is_tied=True, depth=of.depth + 1, **_tie(of, made), **found)


def step(of: Instance, name: str, status: str = "complete", kind: str = "do", **given: Any) -> Step:
    """Make the next step of an instance, one with a body with an attempt."""
    made_up = _WAITS.pop(of.key, None)
    if made_up is not None:
        Attempt.objects.filter(instance_id=of.key, step_seq=made_up.seq).delete()
        Instance.objects.filter(**_tie(of, made_up)).delete()
        made_up.delete()
    made = _step(of, name, status, kind, **given)
    if made_up is not None and status != "waiting":
        _wait(of)  # it is still the last
    if made.wake_at and status == "waiting" and of.status == "waiting" and of.wake_at is None:
        of.wake_at = made.wake_at  # that of its only wait
        Instance.objects.filter(key=of.key).update(wake_at=of.wake_at)
    return made


def _step(of: Instance, name: str, status: str, kind: str, **given: Any) -> Step:
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
        fields["finished_at"] = started + timedelta(seconds=0.8)
    if status in ("complete", "errored") and not given.get("parent"):
        fields["delivery"] = seq
    if status == "complete" and kind != "sleep":
        fields["output"] = {"hold": "h_81", "score": 0.03}
    if status == "errored":
        fields["error"] = FAILURE
    if kind == "event":
        fields["event_types"] = [name]
    made = Step.objects.create(**(fields | given))
    is_tried = kind == "do" and made.attempts == 0 and made.kept_from is None and status != "cancelled"
    if is_tried:
        attempt(made, {"waiting": "errored"}.get(status, status))
        _ATTEMPTS.add(made.pk)
    return made


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
    """Make the next attempt at a step, or at its rollback."""
    made = Attempt.objects.filter(instance_id=of.instance_id, generation=of.generation, step_seq=of.seq)
    phase = given.get("phase", "do")
    if phase == "do" and of.pk in _ATTEMPTS:
        _ATTEMPTS.discard(of.pk)
        made.filter(phase="do").delete()
    number = made.filter(phase=phase).count() + 1
    started = given.pop("started_at", of.started_at if phase == "do" else of.finished_at)
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
    new = Attempt.objects.create(**(fields | given))
    if phase == "do":
        of.attempts, of.lost = number, made.filter(phase="do", status="lost").count()
        Step.objects.filter(pk=of.pk).update(attempts=of.attempts, lost=of.lost)
    return new


def attempts_of(steps: Sequence[Step]) -> None:
    """Make the attempts of many steps that were made without. All but the last of each have failed."""
    Attempt.objects.bulk_create(
        Attempt(
            instance_id=step.instance_id,
            generation=step.generation,
            step_seq=step.seq,
            number=number,
            worker="worker-2",
            status=(status := _status_of_attempt(step, number)),
            error=FAILURE if status == "errored" else None,
            started_at=step.started_at,
            finished_at=None if status == "running" else step.finished_at or step.started_at,
        )
        for step in steps
        for number in range(1, max(step.attempts, 1) + 1)
    )


def _status_of_attempt(step: Step, number: int) -> str:
    is_last = number >= step.attempts
    return step.status if is_last and step.status != "waiting" else "errored"


def failure(
    workflow: str = "orders", *, step: str = "charge_card", error: Any = None, **given: Any
) -> Failure:
    """Make a group of failures whose instances have been deleted."""
    fields = asdict(failed(ErrorRecord(**(error or FAILURE)), workflow=workflow, step=step))
    fields |= {"first_seen": ago(days=2), "counted_to": ago(hours=1)}
    return Failure.objects.create(**(fields | given))


def job(of: Instance, action: str = "pause") -> bulk.Job:
    """Start a bulk job on an instance, with the id of the instance."""
    return bulk.start(action, instances=[of], id=of.id)


def child(of: Instance, status: str = "running", *, name: str = "bill", **given: Any) -> Instance:
    """Make an instance that a step of another one has started and waits for, or has waited for."""
    count = Step.objects.filter(instance_id=of.key, generation=of.generation, name=name).count() + 1
    found = {"workflow": "invoices", "id": f"invoice-{next(_numbers)}"} | given
    options = {"operation": "run_workflow", "workflow": found["workflow"], "id": found["id"]}
    outcome: dict[str, Any] = {"complete": {"output": {"charged": True, "receipt": "r_81"}}}.get(status, {})
    if status in ("errored", "terminated"):
        error = {
            "type": "ChildWorkflowError",
            "message": f"The child is {status}.",
            "details": {"status": status},
        }
        outcome = {"error": error}
    ended = {"complete": "complete", "errored": "errored", "terminated": "errored"}.get(status, "waiting")
    by = step(of, name, ended, "child", count=count, options=options, **outcome)
    return instance(status, is_tied=True, depth=of.depth + 1, **_tie(of, by), **found)


def _tie(parent: Instance, by: Step) -> dict[str, int]:
    return {"parent_key": parent.key, "parent_generation": parent.generation, "parent_step": by.seq}


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
    """Make a living cluster with some workers, each of which holds some instances."""
    worker(workflows, role="cluster", slots=count * slots, **given)
    for _ in range(count):
        worker(workflows, slots=slots, held=held, **given)


def worker(workflows: list[str], **given: Any) -> Worker:
    """Make the row of a process that runs a shift, or of a cluster."""
    now, number = timezone.now(), next(_numbers)
    fields = {"role": "shift", "name": f"host-1:{4000 + number}", "worker_id": 100 + number, "slots": 64}
    return Worker.objects.create(
        **(fields | {"workflows": workflows, "started_at": now - timedelta(hours=1), "seen_at": now} | given)
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
