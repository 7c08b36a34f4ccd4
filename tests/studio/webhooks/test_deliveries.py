"""A delivery does what its hook says, once; what is wrong with it is answered and recorded."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection

from engine import workflows
from engine.models import Audit, Event, Instance
from studio.models import Webhook, WebhookDelivery
from studio.webhooks import deliveries, limits, sweeping
from studio.webhooks.incoming import Incoming
from tests.studio import factories
from tests.studio.webhooks.conftest import NAP, SECRETS, Make, body_of, deliver, signed

pytestmark = pytest.mark.django_db

HOSTILE = {
    "nul": (b'{"seconds": 1, "a": "\\u0000"}', 400),
    "lone surrogate": (b'{"a": "\\ud800"}', 400),
    "nan": (b'{"a": NaN}', 400),
    "huge number": (b'{"a": 1e400}', 400),
    "many digits": (b'{"a": ' + b"9" * 4301 + b"}", 400),
    "deep": (b"[" * 100_000 + b"]" * 100_000, 400),
    "twice": (b'{"seconds": 1, "seconds": 2}', 400),
    "rest": (b'{"seconds": 1}x', 400),
    "quotes": (b"{'seconds': 1}", 400),
    "latin": (b'{"a": "\xff"}', 400),
    "bom": (b'\xef\xbb\xbf{"seconds": 1}', 400),
    "utf-16": ('{"seconds": 1}'.encode("utf-16"), 400),
    "empty": (b"", 400),
    "tokens": (b"[" + b"[]," * 300_000 + b"[]]", 400),
    "null": (b"null", 422),
    "text": (b'"x"', 422),
    "list": (b"[]", 422),
    "wrong field": (b'{"seconds": "soon"}', 422),
    "large": (body_of({"a": "x" * 1_048_576}), 413),
}


class TestStarting:
    def test_id_tags_and_params_come_from_the_payload(self, make_hook: Make) -> None:
        hook = make_hook(
            "github", id_from="= pr- + /number", tags_from="/repo\n= github", payload_from="seconds: /number"
        )
        body = body_of({"number": 7, "repo": "shop"})
        answer = deliver(hook, body, signed("github", body))
        found = Instance.objects.get()
        assert (found.id, found.tags, found.params) == ("pr-7", ["shop", "github"], {"seconds": 7})
        assert answer.json() == {
            "outcome": "done",
            "delivery": "d-1",
            "is_repeated": False,
            "workflow": "nap",
            "instance": "pr-7",
        }
        audit = Audit.objects.get(verb="start")
        assert (audit.actor, audit.instance_id) == ("webhook a github hook", "pr-7")

    def test_an_instance_that_is_there_is_not_started_again(self, make_hook: Make) -> None:
        hook = make_hook("github", id_from="= fixed")
        first = deliver(hook, NAP, signed("github", NAP, id="a"))
        second = deliver(hook, NAP, signed("github", NAP, id="b"))
        assert (first.status_code, second.status_code) == (202, 200)
        assert second.json()["outcome"] == "known"
        assert Instance.objects.count() == 1

    def test_a_workflow_without_params_needs_none(self, make_hook: Make) -> None:
        hook = make_hook("github", workflow="tick")
        assert deliver(hook, NAP, signed("github", NAP)).status_code == 202

    def test_what_a_condition_leaves_out_is_recorded(self, make_hook: Make) -> None:
        hook = make_hook("github", only_if="/action = opened")
        answer = deliver(hook, NAP, signed("github", NAP))
        assert (answer.status_code, answer.json()["outcome"]) == (200, "ignored")
        assert answer.json()["reason"] == "not met: /action = opened"
        assert (Instance.objects.count(), WebhookDelivery.objects.get().outcome) == (0, "ignored")

    def test_githubs_ping_is_answered(self, make_hook: Make) -> None:
        body = body_of({"zen": "Design for failure."})
        headers = {**signed("github", body), "X-GitHub-Event": "ping"}
        answer = deliver(make_hook("github"), body, headers)
        assert (answer.status_code, answer.json()["outcome"]) == (200, "ignored")


class TestRefusals:
    @pytest.mark.parametrize(("body", "status"), HOSTILE.values(), ids=HOSTILE)
    def test_a_bad_payload_starts_nothing(self, make_hook: Make, body: bytes, status: int) -> None:
        hook = make_hook("github")
        answer = deliver(hook, body, signed("github", body))
        assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
        assert Instance.objects.count() == 0
        if status != 413:  # refused before its signature is looked at
            row = WebhookDelivery.objects.get()
            assert (row.outcome, row.status, row.code) == ("refused", status, answer.json()["code"])

    def test_each_wrong_field_is_named(self, make_hook: Make) -> None:
        hook = make_hook("github", workflow="process-order")
        body = body_of({"customer": 7, "items": [{"sku": "", "quantity": 0}]})
        answer = deliver(hook, body, signed("github", body))
        assert answer.status_code == 422
        paths = [error["path"] for error in answer.json()["errors"]]
        assert paths == ["params/customer", "params/items/0/sku", "params/items/0/quantity"]
        assert "params/items/0/sku" in WebhookDelivery.objects.get().error

    @pytest.mark.parametrize("id", ["", "../../x", "a/b", "a\u202eb", "x" * 101, "Ⓐ", "<script>"])
    def test_an_id_that_no_instance_can_have_is_refused(self, make_hook: Make, id: str) -> None:
        hook = make_hook("github", id_from="/id", payload_from="seconds: = 1")
        body = body_of({"id": id})
        answer = deliver(hook, body, signed("github", body))
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_name")

    def test_a_workflow_that_is_gone_is_named(self, make_hook: Make, own_registry: None) -> None:
        hook = make_hook("github")
        workflows._workflows.pop("nap")
        answer = deliver(hook, NAP, signed("github", NAP))
        assert (answer.status_code, answer.json()["code"]) == (409, "unknown_workflow")

    def test_a_repeated_delivery_is_tried_again(self, make_hook: Make) -> None:
        hook = make_hook("github", action="event", workflow="listen-for", id_from="= i-1", type_from="= news")
        headers = signed("github", NAP)
        assert deliver(hook, NAP, headers).status_code == 404
        workflows["listen-for"].start(["news"], id="i-1")
        assert deliver(hook, NAP, headers).status_code == 202
        row = WebhookDelivery.objects.get()
        assert (row.count, row.outcome, row.code, row.error) == (2, "done", "", "")

    def test_an_unknown_address_and_other_methods_are_problems(self, client: Any, make_hook: Make) -> None:
        assert client.post("/hooks/nothing-here").json()["code"] == "not_found"
        answer = client.get(f"/hooks/{make_hook('github').slug}")
        assert (answer.status_code, answer["Allow"]) == (405, "POST")
        assert answer.json()["code"] == "method_not_allowed"

    def test_a_paused_hook_says_when_to_come_again(self, make_hook: Make) -> None:
        hook = make_hook("github")
        Webhook.objects.update(paused_at=factories.ago(seconds=1))
        answer = deliver(hook, NAP, signed("github", NAP))
        assert (answer.status_code, answer["Retry-After"]) == (503, "300")
        assert deliver(hook, NAP, {}).status_code == 401  # strangers do not learn it


class TestEvents:
    def hook(self, make_hook: Make, **given: Any) -> Webhook:
        fields = {
            "action": "event",
            "workflow": "listen-for",
            "id_from": "/id",
            "type_from": "/type",
            **given,
        }
        return make_hook("github", **fields)

    def test_type_and_payload_come_from_the_payload(self, make_hook: Make) -> None:
        workflows["listen-for"].start(["paid"], id="o-1")
        body = body_of({"id": "o-1", "type": "paid", "amount": 12})
        answer = deliver(self.hook(make_hook, payload_from="/amount"), body, signed("github", body))
        assert answer.status_code == 202
        found = Event.objects.get()
        assert (found.type, found.payload, found.sent_by) == ("paid", 12, "webhook a github hook")

    def test_the_same_key_sends_it_once(self, make_hook: Make) -> None:
        workflows["listen-for"].start(["paid"], id="o-1")
        hook = self.hook(make_hook, dedup_from="/key")
        body = body_of({"id": "o-1", "type": "paid", "key": "k"})
        outcomes = [deliver(hook, body, signed("github", body, id=one)).json()["outcome"] for one in "abc"]
        assert outcomes == ["done", "known", "known"]
        assert Event.objects.count() == 1

    def test_without_a_key_each_delivery_is_an_event(self, make_hook: Make) -> None:
        workflows["listen-for"].start(["paid"], id="o-1")
        hook = self.hook(make_hook)
        body = body_of({"id": "o-1", "type": "paid"})
        for one in ("a", "b", "a"):
            deliver(hook, body, signed("github", body, id=one))
        assert Event.objects.count() == 2

    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ({"id": "nowhere", "type": "paid"}, 404, "instance_not_found"),
            ({"id": "../x", "type": "paid"}, 404, "instance_not_found"),
            ({"type": "paid"}, 422, "missing_value"),
            ({"id": "o-1"}, 422, "missing_value"),
            ({"id": "o-1", "type": "x" * 101}, 422, "invalid_name"),
            ({"id": "o-1", "type": "reprise:request:1:1"}, 422, "invalid_name"),
        ],
    )
    def test_what_cannot_be_sent_is_refused(
        self, make_hook: Make, body: dict[str, str], status: int, code: str
    ) -> None:
        workflows["listen-for"].start(["paid"], id="o-1")
        raw = body_of(body)
        answer = deliver(self.hook(make_hook), raw, signed("github", raw))
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert Event.objects.count() == 0

    def test_a_finished_instance_takes_none(self, make_hook: Make) -> None:
        factories.instance("complete", workflow="listen-for", id="o-1")
        body = body_of({"id": "o-1", "type": "paid"})
        answer = deliver(self.hook(make_hook), body, signed("github", body))
        assert (answer.status_code, answer.json()["code"]) == (409, "instance_finished")
        assert WebhookDelivery.objects.get().code == "instance_finished"


class TestOnce:
    @pytest.mark.parametrize("scheme", ["standard", "github", "stripe", "slack", "shared"])
    def test_an_exact_replay_gets_the_first_outcome(self, make_hook: Make, scheme: str) -> None:
        hook = make_hook(scheme)
        body = body_of({"seconds": 1}) if scheme != "stripe" else NAP
        headers = signed(scheme, body)
        first, *others = [deliver(hook, body, headers) for _ in range(3)]
        assert {answer.status_code for answer in (first, *others)} == {202}
        assert {answer.json()["instance"] for answer in others} == {first.json()["instance"]}
        assert [answer.json()["is_repeated"] for answer in others] == [True, True]
        assert (Instance.objects.count(), WebhookDelivery.objects.get().count) == (1, 3)

    def test_ids_of_stripe_and_slack_are_in_the_payload(self, make_hook: Make) -> None:
        for scheme, name in (("stripe", "id"), ("slack", "event_id")):
            hook = make_hook(scheme, payload_from="seconds: = 1")
            for value in ("evt_1", "evt_2", "evt_1"):
                # A new signature each: senders sign a repeated delivery anew.
                body = body_of({name: value, "attempt": WebhookDelivery.objects.count()})
                deliver(hook, body, signed(scheme, body))
            assert {row.delivery_id for row in WebhookDelivery.objects.filter(webhook=hook)} == {
                "evt_1",
                "evt_2",
            }
        assert Instance.objects.count() == 4

    def test_a_shared_secret_may_name_where_the_id_is(self, make_hook: Make) -> None:
        by_header = make_hook("shared", name="one", delivery_id_from="header X-Request-Id")
        by_path = make_hook("shared", name="two", delivery_id_from="/seconds")
        headers = {**signed("shared", NAP), "X-Request-Id": "r-1"}
        deliver(by_header, NAP, headers)
        deliver(by_path, NAP, headers)
        assert {row.delivery_id for row in WebhookDelivery.objects.all()} == {"r-1", "1"}

    def test_two_hooks_do_not_share_ids(self, make_hook: Make) -> None:
        for name in ("one", "two"):
            deliver(make_hook("github", name=name), NAP, signed("github", NAP))
        assert Instance.objects.count() == 2

    @pytest.mark.django_db(transaction=True)
    def test_twenty_at_once_start_one(self, make_hook: Make, transactional_db: None) -> None:
        hook = make_hook("standard")
        headers, start = signed("standard", NAP), threading.Barrier(20)

        def send(_: int) -> tuple[int, str]:
            start.wait(60)
            try:
                answer = deliver(hook, NAP, headers)
                return answer.status_code, answer.json()["instance"]
            finally:
                connection.close()

        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(send, range(20)))
        assert answers == [(202, Instance.objects.get().id)] * 20
        assert WebhookDelivery.objects.get().count == 20


@pytest.mark.django_db(transaction=True)
def test_no_transaction_of_the_site_is_around_a_delivery(
    make_hook: Make, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ATOMIC_REQUESTS, deliveries of a hook would wait for each other, and be answered before they are stored."""
    hook = make_hook("github")
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    found: list[bool] = []

    def watch(execute: Any, sql: str, *rest: Any) -> Any:
        if "studio_throttle" in sql or "slug" in sql:
            found.append(connection.in_atomic_block)
        return execute(sql, *rest)

    with connection.execute_wrapper(watch):
        assert deliver(hook, NAP, signed("github", NAP)).status_code == 202
    assert found
    assert not any(found)


class TestForms:
    def test_a_slash_command_is_an_object_of_texts(self, make_hook: Make) -> None:
        hook = make_hook("slack", id_from="= cmd- + /text", payload_from="seconds: = 1")
        body = urlencode({"command": "/nap", "text": "now", "trigger_id": "13.4"}).encode()
        answer = deliver(hook, body, signed("slack", body), "application/x-www-form-urlencoded")
        assert (answer.status_code, answer.content) == (200, b"")
        assert (Instance.objects.get().id, WebhookDelivery.objects.get().delivery_id) == ("cmd-now", "13.4")

    def test_an_interaction_is_the_json_in_payload(self, make_hook: Make) -> None:
        hook = make_hook("slack", id_from="/user/id", payload_from="seconds: = 1")
        payload = body_of({"type": "block_actions", "user": {"id": "U1"}, "trigger_id": "9"}).decode()
        body = urlencode({"payload": payload}).encode()
        deliver(hook, body, signed("slack", body), "application/x-www-form-urlencoded")
        assert Instance.objects.get().id == "U1"

    @pytest.mark.parametrize(
        "body", [b"a=1&a=2", b"a", b"a=%ff", b"a=%00", b"a=\xff", b"&" * 200, b"payload=%7B"]
    )
    def test_a_bad_form_is_refused(self, make_hook: Make, body: bytes) -> None:
        hook = make_hook("slack")
        answer = deliver(hook, body, signed("slack", body), "application/x-www-form-urlencoded")
        assert answer.status_code in (400, 422)
        assert Instance.objects.count() == 0

    def test_slacks_challenge_is_answered_only_if_it_is_signed(self, make_hook: Make) -> None:
        hook = make_hook("slack")
        body = body_of({"type": "url_verification", "challenge": "3eZbrw1aBm2rZgRNFdxV"})
        assert deliver(hook, body, signed("slack", body)).json() == {"challenge": "3eZbrw1aBm2rZgRNFdxV"}
        assert deliver(hook, body, signed("slack", body, secret="another secret")).status_code == 401


class TestLimits:
    def test_a_hook_takes_so_many_in_a_minute(self, make_hook: Make) -> None:
        hook = make_hook("github", per_minute="3")
        answers = [deliver(hook, NAP, signed("github", NAP, id=str(n))) for n in range(4)]
        assert [answer.status_code for answer in answers] == [202, 202, 202, 429]
        assert 1 <= int(answers[-1]["Retry-After"]) <= 60

    def test_wrong_signatures_are_answered_up_to_a_number_and_do_not_hinder_the_sender(
        self, make_hook: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "WRONG_SIGNATURES", 3)
        monkeypatch.setattr(limits, "_over", {})
        hook = make_hook("github")
        statuses = [deliver(hook, NAP, {}).status_code for _ in range(6)]
        assert statuses == [401, 401, 401, 429, 429, 429]
        assert deliver(hook, NAP, signed("github", NAP)).status_code == 202
        hook.refresh_from_db()
        assert hook.refused == 3


class TestKeeping:
    def test_bodies_are_encrypted_and_secret_headers_are_not_kept(self, make_hook: Make) -> None:
        hook = make_hook("shared", delivery_id_from="header X-Request-Id")
        headers = {**signed("shared", NAP), "X-Request-Id": "r", "Authorization": "Bearer t", "X-Other": "o"}
        deliver(hook, NAP, headers)
        row = WebhookDelivery.objects.get()
        assert row.body is not None
        assert "seconds" not in row.body
        assert SECRETS["shared"] not in str(row.headers)
        assert row.headers == {"content-type": "application/json"}

    def test_the_newest_bodies_are_kept(self, make_hook: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sweeping, "BODIES", 3)
        hook = make_hook("github")
        for n in range(6):
            deliver(hook, NAP, signed("github", NAP, id=str(n)))
        sweeping.sweep(hook)
        kept = WebhookDelivery.objects.filter(body__isnull=False).order_by("key")
        assert [row.delivery_id for row in kept] == ["3", "4", "5"]
        assert WebhookDelivery.objects.count() == 6

    def test_old_bodies_and_then_old_rows_go(self, make_hook: Make) -> None:
        hook = make_hook("github")
        for one in ("young", "old", "older"):
            deliver(hook, NAP, signed("github", NAP, id=one))
        for one, days in (("old", 8), ("older", 31)):
            moment = factories.ago(days=days)
            WebhookDelivery.objects.filter(delivery_id=one).update(received_at=moment, last_at=moment)
        sweeping.sweep(hook)
        left = {row.delivery_id: row.body is not None for row in WebhookDelivery.objects.all()}
        assert left == {"young": True, "old": False}

    def test_hooks_that_get_no_more_are_swept_to_the_end(
        self, make_hook: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sweeping, "BATCH", 2)
        for name in ("one", "two"):
            hook = make_hook("github", name=name)
            for n in range(7):
                deliver(hook, NAP, signed("github", NAP, id=f"{name}-{n}"))
        old = factories.ago(days=8)
        WebhookDelivery.objects.exclude(delivery_id="one-6").update(received_at=old)
        WebhookDelivery.objects.filter(delivery_id__lte="two-4").exclude(delivery_id="one-6").update(
            last_at=factories.ago(days=31)
        )
        sweeping.sweep_all(seconds=0)
        assert WebhookDelivery.objects.filter(body__isnull=False).count() == 14
        sweeping.sweep_all()
        left = {row.delivery_id: row.body is not None for row in WebhookDelivery.objects.all()}
        assert left == {"one-6": True, "two-5": False, "two-6": False}

    def test_deliveries_sweep_from_time_to_time(
        self, make_hook: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sweeping, "EVERY", 1)
        monkeypatch.setattr(sweeping, "BODIES", 1)
        hook = make_hook("github")
        for n in range(2):
            deliver(hook, NAP, signed("github", NAP, id=str(n)))
        assert WebhookDelivery.objects.filter(body__isnull=False).count() == 1

    def test_a_hook_that_is_deleted_meanwhile_takes_nothing(self, make_hook: Make) -> None:
        hook = make_hook("github")
        Webhook.objects.filter(key=hook.key).delete()
        with pytest.raises(Exception, match="nothing at this address"):
            deliveries.accept(hook, Incoming.made(signed("github", NAP), NAP))
        assert Instance.objects.count() == 0
