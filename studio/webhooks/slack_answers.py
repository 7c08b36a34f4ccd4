"""Slack asks a new address for a challenge, to see that it is ours."""

from __future__ import annotations

from engine.values.errors import RepriseError
from studio.models import Webhook
from studio.webhooks import reading
from studio.webhooks.incoming import Incoming
from studio.webhooks.refusals import DeliveryError
from studio.webhooks.schemes import slack

LONGEST = 1_000


def challenge_of(hook: Webhook, incoming: Incoming) -> str | None:
    """Return the challenge in a verified delivery of Slack, if it is one."""
    if hook.scheme != slack.SLACK.name or incoming.is_form or b"url_verification" not in incoming.body:
        return None
    try:
        payload = reading.read(incoming)
    except (DeliveryError, RepriseError):
        return None
    if not isinstance(payload, dict) or payload.get("type") != "url_verification":
        return None
    challenge = payload.get("challenge")
    return challenge if isinstance(challenge, str) and len(challenge) <= LONGEST else None
