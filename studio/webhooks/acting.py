"""What a delivery does: start an instance, or send an event to one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from engine.declare.registry import workflows as registry
from engine.models import Event
from engine.steer import by_name, events, launch
from engine.values.errors import (
    InstanceNotFoundError,
    InvalidNameError,
    UnknownWorkflowError,
)
from engine.values.identity import check_instance_id
from studio.models import Webhook
from studio.webhooks import mapping
from studio.webhooks.mapping import Rules, Taken, Written
from studio.webhooks.refusals import DeliveryError
from studio.webhooks.schemes import github
from studio.webhooks.sources import Given

DONE, KNOWN, IGNORED, REFUSED = "done", "known", "ignored", "refused"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a delivery."""

    outcome: str
    instance_id: str = ""
    event_type: str = ""
    because: str = ""

    @property
    def status(self) -> int:
        """The status of the answer: 202 if a worker has something to do."""
        return 202 if self.outcome == DONE else 200


def written(hook: Webhook) -> Written:
    """Return the mapping of a hook as it was typed."""
    return Written(
        id=hook.id_from,
        type=hook.type_from,
        dedup=hook.dedup_from,
        tags=hook.tags_from,
        payload=hook.payload_from,
        only_if=hook.only_if,
    )


def actor_of(hook: Webhook) -> str:
    """Return who acts, for the audit trail."""
    return f"webhook {hook.name}"


def act(hook: Webhook, rules: Rules, given: Given, delivery_id: str) -> Outcome:
    """Do what the hook does. Raises DeliveryError and the engine's errors; then nothing must stay written."""
    if hook.scheme == github.GITHUB.name and given.headers.get(github.EVENT) == "ping":
        return Outcome(IGNORED, because="GitHub's ping")
    unmet = mapping.unmet(rules, given)
    if unmet:
        return Outcome(IGNORED, because=f"not met: {unmet}"[:500])
    taken = mapping.take(rules, given)
    return _start(hook, taken) if hook.starts else _send(hook, taken, delivery_id)


def _start(hook: Webhook, taken: Taken) -> Outcome:
    if hook.workflow not in registry:
        raise UnknownWorkflowError(hook.workflow, registry)
    workflow, by = registry[hook.workflow], actor_of(hook)
    params = taken.payload if workflow.takes_params else None
    if taken.id is None:
        return Outcome(DONE, launch.start(workflow, params, tags=taken.tags, by=by).id)
    instance, is_new = launch.get_or_start(workflow, taken.id, params, tags=taken.tags, by=by)
    return Outcome(DONE if is_new else KNOWN, instance.id)


def _send(hook: Webhook, taken: Taken, delivery_id: str) -> Outcome:
    if taken.id is None or taken.type is None:
        raise DeliveryError(422, "missing_value", "This webhook says no instance or no type of an event.")
    try:
        instance = by_name.find(hook.workflow, check_instance_id(taken.id))
    except InvalidNameError:
        instance = None
    if instance is None:
        raise InstanceNotFoundError(hook.workflow, taken.id)
    dedup_key = taken.dedup if taken.dedup is not None else _dedup_key(hook, delivery_id)
    is_known = Event.objects.filter(instance_id=instance.key, dedup_key=dedup_key).exists()
    event = events.send_event(instance, taken.type, taken.payload, dedup_key, by=actor_of(hook))
    return Outcome(KNOWN if is_known else DONE, instance.id, event.type)


def _dedup_key(hook: Webhook, delivery_id: str) -> str:
    """Return a key that no other hook uses, whatever the sender puts into the id of a delivery."""
    return f"webhook-{hook.key}-{hashlib.sha256(delivery_id.encode()).hexdigest()[:40]}"
