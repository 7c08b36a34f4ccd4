"""The pages of webhooks follow deliveries, for admins only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from studio.frame.hub import hub
from studio.live import consumer
from studio.models import Webhook, WebhookDelivery
from studio.webhooks import hooks
from tests.studio import factories
from tests.studio.live.conftest import Open, closing_code, frame, until_it_listens
from tests.studio.webhooks.conftest import NAP, SECRETS, deliver, signed

pytestmark = pytest.mark.django_db(transaction=True)

FIELDS = {"name": "billing", "scheme": "github", "workflow": "nap", "action": "start"}


@sync_to_async
def admin_and_hook(**given: str) -> tuple[User, Webhook]:
    admin = factories.person("admin", "ada")
    return admin, hooks.create({**FIELDS, **given}, SECRETS["github"], by=admin)


@sync_to_async
def sent(hook: Webhook, name: str) -> HttpResponse:
    return deliver(hook, NAP, signed("github", NAP, id=name))


async def page_of(opened: Open, admin: User, topic: str) -> WebsocketCommunicator:
    """Open a socket that is sent something else only when something has changed; its snapshot is still to come."""
    await (await opened("topic=schedules", admin)).connect()
    await until_it_listens()
    tab = await opened(topic, admin)
    await tab.connect()
    return tab


async def test_a_delivery_appears_on_both_pages(opened: Open) -> None:
    admin, hook = await admin_and_hook()
    await sent(hook, "first")
    tabs = [await page_of(opened, admin, topic) for topic in ("topic=webhooks", f"topic=webhook:{hook.key}")]
    for tab in tabs:
        assert "started" in await frame(tab)
    await Webhook.objects.filter(key=hook.key).aupdate(only_if="/seconds = 2")
    assert (await sent(hook, "second")).status_code == 200  # it starts nothing: no instance changes
    assert "ignored" in await frame(tabs[0])
    news = await frame(tabs[1])
    assert news.index("second") < news.index("first")
    assert 'hx-target="#hook-steer"' not in news


@pytest.mark.parametrize(
    ("piece", "act", "said"),
    [
        (
            "facts",
            lambda hook, admin: deliver(hook, NAP, signed("github", NAP, secret="x" * 16)),
            "signature",
        ),
        ("state", lambda hook, admin: hooks.pause(hook, by=admin), "paused"),
        ("steer", lambda hook, admin: hooks.pause(hook, by=admin), "Resume"),
        ("facts", lambda hook, admin: hooks.change(hook, {"id_from": "= new-id"}, by=admin), "new-id"),
    ],
    ids=["wrong signature", "paused", "to resume", "changed"],
)
async def test_what_else_happens_to_a_hook_appears(
    opened: Open, piece: str, act: Callable[[Webhook, User], Any], said: str
) -> None:
    admin, hook = await admin_and_hook()
    tab = await page_of(opened, admin, f"topic=webhook:{hook.key}")
    await frame(tab)
    await sync_to_async(act)(hook, admin)
    _, _, news = (await frame(tab)).partition(f'hx-target="#hook-{piece}"')
    assert said in news


async def test_an_older_page_stays_as_it_is(opened: Open) -> None:
    admin, hook = await admin_and_hook()
    for n in range(3):
        await sent(hook, f"sent-{n}")
    newest = await WebhookDelivery.objects.alatest("key")
    tab = await page_of(opened, admin, f"topic=webhook:{hook.key}&before={newest.key}")
    before = await frame(tab)
    assert ("sent-1" in before, "sent-2" in before) == (True, False)
    await sent(hook, "sent-3")
    assert await tab.receive_nothing(timeout=1.5)


async def test_a_page_whose_hook_is_deleted_says_so_and_ends(opened: Open) -> None:
    admin, hook = await admin_and_hook()
    tab = await page_of(opened, admin, f"topic=webhook:{hook.key}")
    await frame(tab)
    await sync_to_async(hooks.delete)(hook, by=admin, reason="the shop has closed")
    assert "This webhook was deleted." in await frame(tab)
    assert await closing_code(tab) == consumer.FINISHED


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
async def test_only_admins_get_anything(opened: Open, role: str) -> None:
    admin, hook = await admin_and_hook()
    other = await sync_to_async(factories.person)(role)
    client = Client()
    await sync_to_async(client.force_login)(other)
    for topic in ("topic=webhooks", f"topic=webhook:{hook.key}"):
        theirs = await opened(topic, admin)
        await theirs.connect()
        assert "hx-target" in await frame(theirs)  # and it is kept for admins
        tab = await opened(topic, other)
        await tab.connect()
        assert await tab.receive_output() == {"type": "websocket.close", "code": consumer.NOT_ALLOWED}
        answer = await sync_to_async(client.get)(f"/_f/live/?{topic}")
        assert (answer.status_code, "hx-target" in answer.content.decode()) == (403, False)


async def test_a_delivery_is_no_change_of_an_instance(opened: Open) -> None:
    """Streams and pages of instances do not look again at each delivery."""
    admin, hook = await admin_and_hook(only_if="/seconds = 2")
    tab = await page_of(opened, admin, "topic=webhooks")
    await frame(tab)
    heard: list[frozenset[int] | None] = []
    hub().subscribe(heard.append)
    await sent(hook, "ignored")
    while "ignored" not in await frame(tab):
        continue
    await hub().unsubscribe(heard.append)
    assert heard == [frozenset()]
