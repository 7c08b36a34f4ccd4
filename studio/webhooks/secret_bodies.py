"""Whether the body of a delivery may hold secrets, and is not shown."""

from __future__ import annotations

from engine.declare.registry import declared_events
from engine.declare.registry import workflows as registry
from engine.values.serialization.secret_schema import holds_secrets
from studio.models import Webhook, WebhookDelivery
from studio.webhooks import acting
from studio.webhooks.mapping import MappingError
from studio.webhooks.sources import Constant, Given


def is_hidden(delivery: WebhookDelivery) -> bool:
    """Return whether the body of a delivery may hold secrets, by its hook then or as it is now."""
    return delivery.is_secret or may_hold_secrets(delivery.webhook) or _is_secret_event(delivery.event_type)


def may_hold_secrets(hook: Webhook) -> bool:
    """Return whether a delivery of a hook may hold secrets, whatever becomes of it.

    What is not known counts as secret: a workflow that is not there, and a type that the delivery says, if any declared
    event has secrets.
    """
    if hook.starts:
        return _takes_secrets(hook.workflow)
    constant = _constant_type(hook)
    return any(map(_is_secret_event, declared_events)) if constant is None else _is_secret_event(constant)


def _takes_secrets(name: str) -> bool:
    if name not in registry:
        return True
    schema = registry[name].params_schema() if registry[name].takes_params else None
    return schema is not None and holds_secrets(schema)


def _is_secret_event(name: str) -> bool:
    declared = declared_events.get(name)
    schema = declared.schema() if declared is not None else None
    return schema is not None and holds_secrets(schema)


def _constant_type(hook: Webhook) -> str | None:
    """Return the type of all events of a hook; None if deliveries say it, or if the mapping cannot be read."""
    try:
        text = acting.written(hook).read().type
    except MappingError:
        return None
    if text is None or not all(isinstance(part, Constant) for part in text.parts):
        return None
    found = text.of(Given(None, {}))
    return found if isinstance(found, str) else None
