"""What people send: a test, signed with the hook's own secret, and a delivery once more."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import transaction
from django.utils import timezone

from engine.steer.audit import shortened
from studio.models import Webhook, WebhookDelivery
from studio.webhooks import deliveries, hooks, keys, secret_bodies
from studio.webhooks.deliveries import Accepted, Sender
from studio.webhooks.incoming import Incoming


class BodyGoneError(Exception):
    """The body of a delivery is not kept any more."""


def send_test(hook: Webhook, body: bytes, headers: dict[str, str], *, by: Any) -> Accepted:
    """Sign a body and do with it what is done with a delivery from outside.

    Raises UnreadableSecretError, and DeliveryError if the hook would not accept it.
    """
    now = timezone.now()
    secret = keys.opened(hook.secret)
    chosen = f"test-{uuid.uuid4().hex}"
    scheme, details = deliveries.scheme_of(hook), deliveries.details_of(hook)
    signed = scheme.sign(body, secret, details, id=chosen, now=now.timestamp())
    incoming = Incoming.made({**headers, **signed}, body)
    deliveries.verify(hook, incoming, now)
    with transaction.atomic():
        hooks.note_sending("webhook-test", hook, chosen, by=by)
        return deliveries.accept(
            hook, incoming, Sender(shortened(by.get_username()), is_test=True), delivery_id=chosen
        )


def send_again(delivery: WebhookDelivery, *, token: str, by: Any) -> Accepted:
    """Do once more what a delivery does, by the hook as it is now. Signature and age are not asked again.

    The same `token` sends it once. Raises BodyGoneError and UnreadableSecretError.
    """
    if delivery.body is None:
        raise BodyGoneError
    hook = delivery.webhook
    incoming = Incoming.made(delivery.headers, keys.opened_body(delivery.body))
    sender = Sender(
        shortened(by.get_username()), again_of=delivery.key, is_secret=secret_bodies.is_hidden(delivery)
    )
    with transaction.atomic():
        accepted = deliveries.accept(hook, incoming, sender, delivery_id=f"again-{delivery.key}-{token}")
        if not accepted.is_repeated:
            hooks.note_sending("webhook-send-again", hook, delivery.delivery_id, by=by)
    return accepted
