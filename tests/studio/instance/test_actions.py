"""Pause, resume, terminate, send an event: done once, or refused with a reason."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from engine.models import Audit, Event, Instance
from engine.values.identity import new_instance_id
from tests.studio import factories
from tests.studio.instance.reading import choices, labels

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def act(
    client: Client, instance: Instance, action: str, *, htmx: bool = False, **given: str
) -> tuple[int, str]:
    answer = client.post(f"{instance.get_absolute_url()}{action}/", given, headers=HTMX if htmx else {})
    return answer.status_code, answer.content.decode()


def send(
    client: Client, instance: Instance, type: str = "paid", payload: str = '{"ok": true}', **given: str
) -> tuple[int, str]:
    return act(
        client, instance, "events", type=type, payload=payload, **({"token": new_instance_id()} | given)
    )


@pytest.mark.parametrize(
    ("before", "action", "after"),
    [
        ("queued", "pause", "paused"),
        ("waiting", "pause", "paused"),
        ("running", "pause", "waiting_for_pause"),
        ("paused", "resume", "queued"),
        ("waiting_for_pause", "resume", "running"),
        ("running", "terminate", "terminated"),
        ("paused", "terminate", "terminated"),
    ],
)
def test_an_action_is_done_and_recorded_once(operator: Client, before: str, action: str, after: str) -> None:
    instance = factories.instance(before, by="")
    status, _ = act(operator, instance, action, reason="because")
    assert (status, instance.refresh().status) == (302, after)
    (entry,) = Audit.objects.all()
    assert (entry.verb, entry.actor, entry.reason, entry.before, entry.after) == (
        action,
        "oli",
        "because",
        before,
        after,
    )


def test_an_answer_to_htmx_brings_the_page_up_to_date(operator: Client) -> None:
    instance = factories.instance("waiting", id="order-1")
    status, frame = act(operator, instance, "pause", htmx=True)
    assert status == 200
    assert "Paused order-1." in frame
    for piece in ("flash", "head", "why", "actions"):
        assert frame.count(f'hx-target="#{piece}"') == 1


@pytest.mark.parametrize(
    ("status", "action"),
    [
        ("paused", "pause"),
        ("complete", "pause"),
        ("running", "resume"),
        ("complete", "resume"),
        ("terminated", "terminate"),
        ("errored", "terminate"),
    ],
)
@pytest.mark.parametrize("htmx", [True, False])
def test_a_stale_action_is_refused_and_says_who_was_first(
    operator: Client, status: str, action: str, htmx: bool
) -> None:
    instance = factories.instance(status)
    factories.deed(instance, "terminate", "li", "wrong IBAN")
    code, page = act(operator, instance, action, htmx=htmx, reason="me too")
    assert code == 409
    assert "Last action: terminated by li (“wrong IBAN”)." in page
    assert 'id="why"' in page
    assert instance.refresh().status == status


@pytest.mark.parametrize("reason", ["", "   "])
def test_terminating_needs_a_reason(operator: Client, reason: str) -> None:
    instance = factories.instance("running")
    code, page = act(operator, instance, "terminate", reason=reason)
    assert (code, instance.refresh().status) == (422, "running")
    assert "Enter a reason to terminate it." in page
    assert 'aria-labelledby="terminate-title" data-open' in page


def test_a_reason_of_any_length_and_content_is_stored(operator: Client) -> None:
    instance = factories.instance("running")
    assert act(operator, instance, "terminate", reason="a\0b" + "x" * 5_000)[0] == 302
    assert Audit.objects.get().reason.startswith("abxxx")


class TestEvents:
    def test_an_event_is_buffered_with_who_sent_it(self, operator: Client) -> None:
        instance = factories.instance("waiting")
        assert send(operator, instance)[0] == 302
        event = Event.objects.get()
        assert (event.type, event.payload, event.sent_by, event.state) == (
            "paid",
            {"ok": True},
            "oli",
            "buffered",
        )

    def test_an_empty_payload_is_null(self, operator: Client) -> None:
        instance = factories.instance("waiting")
        send(operator, instance, payload="  ")
        assert Event.objects.get().payload is None

    def test_a_double_click_sends_one(self, operator: Client) -> None:
        instance = factories.instance("waiting")
        token = new_instance_id()
        assert [send(operator, instance, token=token)[0] for _ in range(2)] == [302, 302]
        assert Event.objects.count() == 1

    def test_an_old_form_with_another_payload_sends_nothing(self, operator: Client) -> None:
        instance = factories.instance("waiting")
        token = new_instance_id()
        send(operator, instance, token=token)
        assert send(operator, instance, payload="2", token=token)[0] == 409
        assert Event.objects.count() == 1

    @pytest.mark.parametrize(
        ("type", "payload", "said"),
        [
            ("paid", "{", "line 1"),
            ("paid", "NaN", "line 1"),
            ("paid", '{"a": 1, "a": 2}', "a"),
            ("", "1", "Type"),
            ("x" * 101, "1", "100"),
            ("a\x07b", "1", "control"),
            ("order-approved", '{"approved": "perhaps"}', "line 1, column 14"),
            ("order-approved", "", "approved"),
        ],
    )
    def test_what_cannot_be_sent_is_marked_and_kept(
        self, operator: Client, type: str, payload: str, said: str
    ) -> None:
        instance = factories.instance("waiting")
        code, page = send(operator, instance, type=type, payload=payload)
        assert code == 422
        assert "Not sent: fix 1 field." in page
        assert said in page
        assert 'aria-labelledby="event-title" data-open' in page
        assert not Event.objects.exists()

    def test_a_finished_instance_takes_none(self, operator: Client) -> None:
        code, page = send(operator, factories.instance("complete"))
        assert code == 409
        assert not Event.objects.exists()
        assert "complete" in page


@pytest.mark.parametrize("path", ["/workflows/nowhere/instances/x/", "/workflows/orders/instances/nowhere/"])
@pytest.mark.parametrize("action", ["", "pause/", "resume/", "terminate/", "events/"])
def test_what_does_not_exist_is_not_found(operator: Client, path: str, action: str) -> None:
    factories.instance()
    method = operator.post if action else operator.get
    assert method(f"{path}{action}", {"reason": "x", "type": "x"}).status_code == 404


def test_somebody_who_may_only_answer_is_led_to_the_request(signed_in: Callable[..., Client]) -> None:
    asking = factories.instance("waiting")
    factories.request(asking)
    page = signed_in("approver").get(asking.get_absolute_url()).content.decode()
    assert re.search(r'<a id="act-answer"[^>]*href="[^"]*#requests"', page)


def test_one_action_at_most_stands_out(operator: Client) -> None:
    """Of several that may be done, the one that most likely lets the instance continue."""
    waiting = factories.instance("waiting")
    factories.step(waiting, "card", "waiting", wake_at=factories.ago(minutes=-5))
    factories.step(waiting, "nap", "waiting", "sleep", wake_at=factories.ago(minutes=-9))
    factories.step(waiting, "go", "waiting", "event")
    factories.attempt(waiting.steps.get(name="card"), "errored")
    asking = factories.instance("waiting")
    factories.request(asking)
    factories.step(asking, "nap", "waiting", "sleep", wake_at=factories.ago(minutes=-9))
    for instance, label in ((waiting, "Retry now…"), (asking, "Review")):
        page = operator.get(instance.get_absolute_url()).content.decode()
        assert labels(page)[0] == label
        assert ["primary" in one for one in choices(page)] == [True] + [False] * (len(labels(page)) - 1)


@pytest.mark.parametrize("tab", ["code", "activity"])
def test_an_action_stays_on_the_tab_on_which_it_was_pressed(operator: Client, tab: str) -> None:
    instance = factories.instance("waiting")
    address = instance.get_absolute_url()
    pressed_on = {"Referer": f"http://testserver{address}?tab={tab}&version=now"}
    refused = operator.post(f"{address}terminate/", {}, headers=pressed_on)
    assert re.search(rf'href="{address}\?tab={tab}"\s+aria-current="page"', refused.content.decode())
    done = operator.post(f"{address}terminate/", {"reason": "no"}, headers=pressed_on)
    assert done["Location"] == f"{address}?tab={tab}"


@pytest.mark.parametrize(
    "before", ["", "http://other.example{}?tab=code", "http://testserver{}?tab=nope", "http://[::{}?tab=code"]
)
def test_an_address_before_that_is_no_tab_leads_to_the_first(operator: Client, before: str) -> None:
    address = factories.instance("waiting").get_absolute_url()
    done = operator.post(f"{address}pause/", headers={"Referer": before.format(address)})
    assert done["Location"] == address
