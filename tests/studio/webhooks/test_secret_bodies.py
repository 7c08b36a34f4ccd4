"""A body that may hold secrets is not shown, whatever became of the delivery and however the hook changes later."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from pydantic import BaseModel, SecretStr

from engine import Event, WorkflowStep, workflow
from studio.models import Webhook, WebhookDelivery
from tests.studio.webhooks.conftest import Make, body_of, deliver, signed

pytestmark = pytest.mark.django_db

SignIn = Callable[..., Client]
EVENT = {"action": "event", "id_from": "/id", "type_from": "= card-given", "payload_from": "card: /card"}


class Card(BaseModel):
    card: SecretStr


@pytest.fixture
def admin(signed_in: SignIn) -> Client:
    return signed_in("admin", "ada")


@pytest.fixture
def declared(own_registry: None) -> None:
    """Declare a workflow with secret parameters, one without, and an event with a secret payload."""
    Event("card-given", Card)

    @workflow
    async def charge(step: WorkflowStep, params: Card) -> None: ...

    @workflow
    async def plain(step: WorkflowStep) -> None: ...


def send(hook: Webhook, *, id: str = "d-1", **more: str) -> WebhookDelivery:
    body = body_of({"id": "none", "card": "open-sesame", **more})
    deliver(hook, body, signed("github", body, id=id))
    return WebhookDelivery.objects.get(webhook=hook, delivery_id=id)


def is_shown(admin: Client, row: WebhookDelivery) -> bool:
    """Return whether the page shows the body. It says so if it does not."""
    page = admin.get(f"/webhooks/{row.webhook_id}/deliveries/{row.key}/").content.decode()
    assert ("open-sesame" in page) != ("Not shown: it may hold secrets." in page)
    return "open-sesame" in page


@pytest.mark.parametrize(
    "given",
    [
        EVENT,
        {**EVENT, "only_if": "/id = other"},
        {**EVENT, "type_from": "/type"},
        {**EVENT, "type_from": "= card- + /type"},
        {**EVENT, "type_from": "= card- + = given"},
    ],
    ids=["refused", "ignored", "type from the payload", "half a type", "joined type"],
)
def test_an_event_with_secrets_is_hidden_also_if_it_was_not_sent(
    admin: Client, make_hook: Make, declared: None, given: dict[str, str]
) -> None:
    row = send(make_hook("github", workflow="plain", **given))
    assert row.outcome in ("refused", "ignored")
    assert (row.event_type, row.is_secret) == ("", True)
    assert not is_shown(admin, row)


def test_an_event_without_secrets_is_shown(admin: Client, make_hook: Make, declared: None) -> None:
    row = send(make_hook("github", workflow="charge", **{**EVENT, "type_from": "= card-lost"}))
    assert is_shown(admin, row)


@pytest.mark.parametrize("only_if", ["", "/id = other"])
def test_a_body_stays_hidden_when_its_hook_changes(
    admin: Client, make_hook: Make, declared: None, only_if: str
) -> None:
    hook = make_hook("github", workflow="charge", only_if=only_if)
    row = send(hook)
    Webhook.objects.update(workflow="plain", only_if="")
    assert not is_shown(admin, row)
    admin.post(f"/webhooks/{hook.key}/deliveries/{row.key}/again/", {"token": ""})
    again = WebhookDelivery.objects.get(again_of=row.key)
    assert again.outcome == "done"
    assert not is_shown(admin, again)


def test_a_body_is_hidden_once_its_hook_takes_secrets(admin: Client, make_hook: Make, declared: None) -> None:
    hook = make_hook("github", workflow="plain")
    row = send(hook)
    assert is_shown(admin, row)
    Webhook.objects.update(workflow="charge")
    assert not is_shown(admin, row)
    admin.post(f"/webhooks/{hook.key}/deliveries/{row.key}/again/", {"token": ""})
    Webhook.objects.update(workflow="plain")
    assert not is_shown(admin, WebhookDelivery.objects.get(again_of=row.key))


def test_a_body_for_a_workflow_that_is_not_there_is_hidden(
    admin: Client, make_hook: Make, declared: None
) -> None:
    hook = make_hook("github", workflow="plain")
    Webhook.objects.update(workflow="not-deployed")
    row = send(hook)
    Webhook.objects.update(workflow="plain")
    assert not is_shown(admin, row)


def test_a_refused_delivery_that_is_repeated_is_hidden_by_the_hook_of_then(
    admin: Client, make_hook: Make, declared: None
) -> None:
    hook = make_hook("github", workflow="plain", id_from="/missing")
    assert is_shown(admin, send(hook))
    Webhook.objects.update(workflow="charge")
    send(hook)
    Webhook.objects.update(workflow="plain")
    assert not is_shown(admin, send(hook))
