"""What users and programs write is shown as text on every page."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client
from django.utils.html import escape

from engine.models import Instance, Log
from tests.studio import factories

pytestmark = pytest.mark.django_db

EVIL = [
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</script><script>alert(1)</script>",
    "{{76543|add:98767}}{% debug %}",
    "javascript:alert(1)",
    "<div hx-get=/sign-out hx-trigger=load>",
    "' autofocus onfocus=alert(1) '",
    "\u202eabc",
    "x" * 10_000,
    "</hx-partial><hx-partial hx-target='#main'>",
]


def full_of(evil: str) -> Instance:
    """Make an instance with that text in every free-text field."""
    error = {
        "type": evil,
        "message": evil,
        "step": evil,
        "attempts": 1,
        "details": {evil[:200]: evil},
        "traceback": evil,
    }
    instance = factories.instance(
        "errored",
        params={evil[:200]: [evil]},
        error=error,
        tags=[evil[:100]],
        started_by=evil[:150],
    )
    step = factories.step(instance, evil[:256], "errored", error=error)
    factories.attempt(step, "errored", error=error, worker=evil[:100])
    factories.step(instance, evil[:200], output={evil[:200]: evil})
    factories.step(instance, evil[:99], kind="event", event_types=[evil[:100]])
    factories.event(
        instance,
        evil[:100],
        {evil[:200]: evil},
        sent_by=evil[:150],
        state="consumed",
        consumed_by=3,
        consumed_generation=1,
    )
    Log.objects.create(
        instance_id=instance.key,
        generation=1,
        level="info",
        message=evil,
        fields={evil[:200]: evil},
        step_seq=1,
        attempt=1,
        at=instance.created_at,
    )
    factories.deed(instance, "pause", evil[:150], evil)
    return instance


def assert_is_text(page: str, evil: str) -> None:
    if escape(evil) != evil:
        assert evil not in page
    assert "175310" not in page  # the sum: a token, made of hexadecimal digits, may hold a shorter number
    assert "wsgi" not in page
    assert not re.search(r"<(img|svg onload|div hx-get)", page)
    assert not re.search(r"<script(?![^>]*\bsrc=\"/(?:static|_f/joined)/)", page)
    assert not re.search(r'href="\s*javascript:', page, re.IGNORECASE)


@pytest.mark.parametrize("evil", EVIL, ids=[evil[:16] for evil in EVIL])
def test_the_page_the_lists_and_the_frames_show_it_as_text(operator: Client, evil: str) -> None:
    instance = full_of(evil)
    for where in (
        instance.get_absolute_url(),
        "/instances/",
        "/",
        "/workflows/orders/",
        f"/_f/live/?topic=instance:{instance.key}",
        f"/_f/live/?topic=list&keys={instance.key}",
    ):
        answer = operator.get(where)
        assert answer.status_code == 200
        assert_is_text(answer.content.decode(), evil)


@pytest.mark.parametrize("evil", EVIL, ids=[evil[:16] for evil in EVIL])
def test_forms_show_what_was_typed_as_text(operator: Client, evil: str) -> None:
    sent = {"params": evil, "id": evil, "tags": evil, "token": evil}
    for where in ("/workflows/process-order/start/", "/_f/workflows/process-order/check/"):
        assert_is_text(operator.post(where, sent).content.decode(), evil)
    good = json.dumps({"customer": evil, "items": [{"sku": evil, "quantity": 0}]})
    page = operator.post(
        "/workflows/process-order/start/", {**sent, "params": good, "id": ""}
    ).content.decode()
    assert_is_text(page, evil)


@pytest.mark.parametrize("evil", EVIL, ids=[evil[:16] for evil in EVIL])
def test_the_event_form_and_its_refusal_show_it_as_text(operator: Client, evil: str) -> None:
    instance = factories.instance("waiting")
    sent = {"type": evil, "payload": evil, "token": evil}
    assert_is_text(operator.post(f"{instance.get_absolute_url()}events/", sent).content.decode(), evil)


@pytest.mark.parametrize("evil", EVIL, ids=[evil[:16] for evil in EVIL])
def test_search_and_error_pages_show_it_as_text(operator: Client, evil: str) -> None:
    page = operator.get("/instances/", {"q": evil, "workflow": evil, "status": evil})
    assert_is_text(page.content.decode(), evil)
    assert_is_text(operator.get("/nowhere/" + evil[:1_000]).content.decode(), evil)


def test_a_name_of_a_person_is_text(signed_in) -> None:  # type: ignore[no-untyped-def]
    client = signed_in("operator", "<img src=x>")
    assert "<img" not in client.get("/instances/").content.decode()
