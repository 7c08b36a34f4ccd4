"""Hooks, and senders that sign by their own code rather than by ours."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from studio.models import Webhook
from studio.webhooks import hooks
from studio.webhooks.form import Typed, check
from tests.studio import factories

SECRETS = {
    "standard": "whsec_" + base64.b64encode(b"a key of twenty-four by.").decode(),
    "github": "It's a Secret to Everybody".replace(" ", "-"),
    "stripe": "whsec_a_secret_that_stripe_shows",
    "slack": "8f742231b10e8888abcd99yyyzzz85a5",
    "shared": "a-long-random-shared-secret",
}

Make = Callable[..., Webhook]


@pytest.fixture
def make_hook(db: None) -> Make:
    """Make a hook; by default one that starts `nap` with the whole body."""

    def make(scheme: str = "standard", **given: Any) -> Webhook:
        fields = {"name": f"a {scheme} hook", "workflow": "nap", "scheme": scheme, **given}
        typed = Typed(**fields)
        checked = check(typed, is_new=False)
        assert checked.is_good, checked.problems
        return hooks.create(typed.values, SECRETS[scheme], by=factories.person("admin"))

    return make


def hex_of(secret: str, signed: bytes) -> str:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def signed(
    scheme: str, body: bytes, *, id: str = "d-1", at: float | None = None, secret: str = ""
) -> dict[str, str]:
    """Return the headers of a delivery, made from the words of the senders' documentation."""
    secret, seconds = secret or SECRETS[scheme], int(time.time() if at is None else at)
    if scheme == "standard":
        key = base64.b64decode(secret.removeprefix("whsec_"))
        digest = hmac.new(key, f"{id}.{seconds}.".encode() + body, hashlib.sha256).digest()
        return {
            "webhook-id": id,
            "webhook-timestamp": str(seconds),
            "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
        }
    if scheme == "github":
        return {
            "X-GitHub-Delivery": id,
            "X-GitHub-Event": "push",
            "X-Hub-Signature-256": f"sha256={hex_of(secret, body)}",
        }
    if scheme == "stripe":
        return {"Stripe-Signature": f"t={seconds},v1={hex_of(secret, f'{seconds}.'.encode() + body)}"}
    if scheme == "slack":
        return {
            "X-Slack-Request-Timestamp": str(seconds),
            "X-Slack-Signature": f"v0={hex_of(secret, f'v0:{seconds}:'.encode() + body)}",
        }
    return {"X-Webhook-Secret": secret}


def deliver(
    hook: Webhook, body: bytes, headers: dict[str, str], kind: str = "application/json"
) -> HttpResponse:
    return Client().generic("POST", f"/hooks/{hook.slug}", body, kind, headers=headers)


def body_of(value: Any) -> bytes:
    return json.dumps(value).encode()


NAP = body_of({"seconds": 1})
