"""Admins make hooks, look at deliveries and repeat them; nobody else sees any of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.http import Http404
from django.test import Client
from pydantic import BaseModel, SecretStr

from engine import WorkflowStep, workflow
from engine.models import Audit, Event, Instance
from studio.models import Webhook, WebhookDelivery
from studio.webhooks import hooks
from tests.studio import factories
from tests.studio.webhooks.conftest import NAP, SECRETS, Make, body_of, deliver, signed

pytestmark = pytest.mark.django_db

SignIn = Callable[..., Client]
NEW = {
    "name": "billing",
    "scheme": "github",
    "secret": "",
    "action": "start",
    "workflow": "nap",
    "per_minute": "600",
}
NEW |= {"payload_from": "", "only_if": "", "id_from": ""}


class Login(BaseModel):
    user: str
    password: SecretStr


class Key(BaseModel):
    key: SecretStr


@pytest.fixture
def admin(signed_in: SignIn) -> Client:
    return signed_in("admin", "ada")


def text_of(answer: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


class TestMaking:
    def test_a_made_secret_is_shown_once_and_works(self, admin: Client) -> None:
        answer = admin.post("/webhooks/new/", NEW)
        secret = re.search(r'<code id="new-secret">([^<]+)</code>', answer.content.decode())
        assert secret is not None
        hook = Webhook.objects.get()
        again = admin.get(f"/webhooks/{hook.key}/").content.decode()
        assert secret[1] not in again
        assert f"http://testserver/hooks/{hook.slug}" in again
        assert deliver(hook, NAP, signed("github", NAP, secret=secret[1])).status_code == 202
        row = Audit.objects.get(verb="webhook-create")
        assert (row.actor, row.workflow, row.data) == ("ada", "nap", {"webhook": "billing"})

    def test_a_given_secret_is_never_shown(self, admin: Client) -> None:
        given = {**NEW, "scheme": "stripe", "secret": SECRETS["stripe"]}
        answer = admin.post("/webhooks/new/", given, follow=True)
        assert answer.status_code == 200
        assert SECRETS["stripe"] not in answer.content.decode()
        wrong = admin.post("/webhooks/new/", {**given, "name": "", "workflow": "x"})
        assert (wrong.status_code, SECRETS["stripe"] in wrong.content.decode()) == (422, False)

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"name": ""}, "A name has 1 to 64 printable characters."),
            ({"name": "a\x01b"}, "A name has 1 to 64 printable characters."),
            ({"name": "x" * 65}, "A name has 1 to 64 printable characters."),
            ({"workflow": "nothing"}, "Choose a workflow."),
            ({"scheme": "none"}, "Choose how the sender signs."),
            ({"action": "delete"}, "Choose what a delivery does."),
            ({"scheme": "stripe"}, "Stripe makes the secret and shows it."),
            ({"secret": "short"}, "A secret has 16 to 255 printable ASCII characters"),
            (
                {"scheme": "standard", "secret": "whsec_!!!"},
                "A secret is whsec_ and 16 to 64 bytes in base64.",
            ),
            ({"per_minute": "0"}, "Write a whole number"),
            ({"per_minute": "1e9"}, "Write a whole number"),
            ({"per_minute": "９"}, "Write a whole number"),
            ({"per_minute": "00000000199999999999"}, "Write a whole number"),
            ({"id_from": "{{ id }}"}, "is not a source"),
            ({"only_if": "/a = ^(a+)+$"}, "Line 1:"),
            ({"action": "event"}, "Say which instance gets the event."),
            ({"scheme": "shared", "secret_header": "a b"}, "A header has 1 to 64 letters"),
            ({"scheme": "shared", "delivery_id_from": "= 1"}, "A constant does not tell deliveries apart."),
            (
                {"scheme": "shared", "secret_header": "X-Auth", "delivery_id_from": "header x-auth"},
                "The secret is in this header.",
            ),
            (
                {"scheme": "shared", "secret_header": "X-Auth", "payload_from": "who: header X-Auth"},
                "The secret is in it, so nothing else may read it.",
            ),
        ],
    )
    def test_what_is_wrong_is_said_at_its_field(
        self, admin: Client, given: dict[str, str], said: str
    ) -> None:
        answer = admin.post("/webhooks/new/", {**NEW, **given})
        assert answer.status_code == 422
        assert said in text_of(answer)
        assert Webhook.objects.count() == 0

    def test_two_hooks_have_two_names(self, admin: Client) -> None:
        admin.post("/webhooks/new/", NEW)
        answer = admin.post("/webhooks/new/", NEW)
        assert (answer.status_code, Webhook.objects.count()) == (422, 1)
        assert "There is a webhook named &quot;billing&quot; already." in answer.content.decode()

    def test_addresses_cannot_be_guessed(self, admin: Client) -> None:
        for name in ("Ünïcode hook", "💥"):
            admin.post("/webhooks/new/", {**NEW, "name": name})
        slugs = [hook.slug for hook in Webhook.objects.order_by("key")]
        assert re.fullmatch(r"unicode-hook-[a-z0-9]{16}", slugs[0])
        assert re.fullmatch(r"[a-z0-9]{16}", slugs[1])


class TestPreview:
    EXAMPLE = json.dumps({"number": 7, "action": "opened"})

    def preview(self, admin: Client, **given: str) -> str:
        return text_of(admin.post("/_f/webhooks/check/", {**NEW, "example": self.EXAMPLE, **given}))

    def test_it_shows_what_would_start(self, admin: Client) -> None:
        said = self.preview(admin, id_from="= pr- + /number", payload_from="seconds: /number")
        assert "Starts nap Instance ID pr-7 Parameters { &quot;seconds&quot;: 7 }" in said
        assert Instance.objects.count() == 0

    def test_it_shows_wrong_params_conditions_and_paths(self, admin: Client) -> None:
        assert "params/seconds" in self.preview(admin, payload_from="seconds: /action")
        assert "This condition does not hold: /action = closed" in self.preview(
            admin, only_if="/action = closed"
        )
        assert "there is no text or whole number" in self.preview(admin, id_from="/nothing")
        assert "line 1, column 2" in self.preview(admin, example="{x")

    def test_it_works_without_javascript(self, admin: Client) -> None:
        answer = admin.post(
            "/webhooks/new/",
            {**NEW, "do": "preview", "example": self.EXAMPLE, "payload_from": "seconds: /number"},
        )
        assert (answer.status_code, Webhook.objects.count()) == (200, 0)
        assert "Starts nap" in text_of(answer)

    def test_secrets_of_the_example_are_masked(self, admin: Client, own_registry: None) -> None:
        @workflow
        async def log_in(step: WorkflowStep, params: Login) -> None: ...

        example = json.dumps({"user": "u", "password": "hunter2-hunter2"})
        given = {**NEW, "workflow": "log-in", "example": example}
        answer = admin.post("/_f/webhooks/check/", given).content.decode()
        assert "hunter2-hunter2" not in answer


class TestDeliveries:
    def test_each_shows_what_became_of_it(self, admin: Client, make_hook: Make) -> None:
        hook = make_hook("github", only_if="/seconds = 1")
        deliver(hook, NAP, signed("github", NAP, id="good"))
        other = body_of({"seconds": 2})
        deliver(hook, other, signed("github", other, id="left-out"))
        deliver(hook, b"{", signed("github", b"{", id="broken"))
        answer = admin.get(f"/webhooks/{hook.key}/")
        said = text_of(answer)
        assert "started" in said
        assert Instance.objects.get().get_absolute_url() in answer.content.decode()
        assert "not met: /seconds = 1" in said
        assert "refused" in said
        row = WebhookDelivery.objects.get(delivery_id="broken")
        assert row.error in text_of(admin.get(f"/webhooks/{hook.key}/deliveries/{row.key}/")).replace(
            "&quot;", '"'
        )

    def test_a_repeated_delivery_names_the_workflow_that_it_started(
        self, admin: Client, make_hook: Make, own_registry: None
    ) -> None:
        @workflow
        async def beta(step: WorkflowStep) -> None: ...

        hook = make_hook("github", payload_from="seconds: = soon")
        assert deliver(hook, NAP, signed("github", NAP)).status_code == 422
        Webhook.objects.update(workflow="beta", payload_from="")
        answer = deliver(hook, NAP, signed("github", NAP))
        found = Instance.objects.get()
        assert (answer.json()["workflow"], answer.json()["instance"]) == ("beta", found.id)
        Webhook.objects.update(workflow="nap")
        page = admin.get(f"/webhooks/{hook.key}/").content.decode()
        assert found.get_absolute_url() in page

    def test_each_says_what_became_of_it_then_after_the_hook_was_changed(
        self, admin: Client, make_hook: Make
    ) -> None:
        hook = make_hook("github", id_from="= fixed")
        for one in ("first", "second"):
            deliver(hook, NAP, signed("github", NAP, id=one))
        to_event = {"action": "event", "type_from": "= woken"}
        changed = admin.post(f"/webhooks/{hook.key}/edit/", {**NEW, "id_from": "= fixed", **to_event})
        assert changed.status_code == 302
        for one in ("third", "third"):
            deliver(hook, NAP, signed("github", NAP, id=one))
        Event.objects.update(dedup_key="theirs")
        Webhook.objects.update(dedup_from="= theirs")
        deliver(hook, NAP, signed("github", NAP, id="fourth"))
        page = admin.get(f"/webhooks/{hook.key}/").content.decode()
        rows = re.findall(r'<tr id="wd-.*?</tr>', page, re.DOTALL)
        words = ["already sent", "event sent", "already there", "started"]
        assert [word in row for word, row in zip(words, rows, strict=True)] == [True] * 4
        admin.post(f"/webhooks/{hook.key}/edit/", NEW)
        assert "already sent" in admin.get("/webhooks/").content.decode()

    def test_they_are_paged(self, admin: Client, make_hook: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("studio.webhooks.queries.PAGE", 2)
        hook = make_hook("github")
        for n in range(5):
            deliver(hook, NAP, signed("github", NAP, id=f"d-{n}"))
        seen: list[str] = []
        where = f"/webhooks/{hook.key}/"
        for _ in range(3):
            page = admin.get(where).content.decode()
            seen += re.findall(r'title="(d-\d)"', page)
            older = re.search(r'href="([^"]+)" rel="next"', page)
            where = older[1] if older else ""
        assert (seen, where) == (["d-4", "d-3", "d-2", "d-1", "d-0"], "")

    def test_a_body_is_shown_unless_the_workflow_takes_secrets(
        self, admin: Client, make_hook: Make, own_registry: None
    ) -> None:
        @workflow
        async def store_key(step: WorkflowStep, params: Key) -> None: ...

        body = body_of({"seconds": 1, "key": "open-sesame"})
        plain, secret = make_hook("github"), make_hook("github", name="keys", workflow="store-key")
        for hook in (plain, secret):
            deliver(hook, body, signed("github", body))
        pages = [
            admin.get(f"/webhooks/{row.webhook_id}/deliveries/{row.key}/").content.decode()
            for row in WebhookDelivery.objects.order_by("key")
        ]
        assert "open-sesame" in pages[0]
        assert "open-sesame" not in pages[1]
        assert "Not shown: it may hold secrets." in pages[1]


class TestSendingAgain:
    def test_it_acts_by_the_hook_as_it_is_now(self, admin: Client, make_hook: Make) -> None:
        hook = make_hook("github", payload_from="seconds: = soon")
        deliver(hook, NAP, signed("github", NAP))
        row = WebhookDelivery.objects.get()
        Webhook.objects.update(payload_from="")
        answer = admin.post(f"/webhooks/{hook.key}/deliveries/{row.key}/again/", {"token": ""}, follow=True)
        assert "Sent again: started" in text_of(answer)
        again = WebhookDelivery.objects.latest("key")
        assert (again.again_of, again.sent_by, again.outcome) == (row.key, "ada", "done")
        assert Instance.objects.get().started_by == f"webhook {hook.name}"
        audit = Audit.objects.get(verb="webhook-send-again")
        assert (audit.actor, audit.data) == ("ada", {"webhook": hook.name, "delivery": "d-1"})

    def test_a_double_click_sends_one(self, admin: Client, make_hook: Make) -> None:
        hook = make_hook("github")
        deliver(hook, NAP, signed("github", NAP))
        page = admin.get(f"/webhooks/{hook.key}/").content.decode()
        token = re.search(r'name="token" value="([^"]+)"', page)
        assert token is not None
        where = f"/webhooks/{hook.key}/deliveries/{WebhookDelivery.objects.get().key}/again/"
        for _ in range(2):
            admin.post(where, {"token": token[1]})
        assert Instance.objects.count() == 2
        assert Audit.objects.filter(verb="webhook-send-again").count() == 1

    def test_without_its_body_it_says_so(self, admin: Client, make_hook: Make) -> None:
        hook = make_hook("github")
        deliver(hook, NAP, signed("github", NAP))
        WebhookDelivery.objects.update(body=None)
        answer = admin.post(f"/webhooks/{hook.key}/deliveries/{WebhookDelivery.objects.get().key}/again/")
        assert (answer.status_code, Instance.objects.count()) == (409, 1)
        assert "its body is not kept any more" in text_of(answer)


class TestTesting:
    @pytest.mark.parametrize("scheme", SECRETS)
    def test_it_is_signed_with_the_real_secret(self, admin: Client, make_hook: Make, scheme: str) -> None:
        hook = make_hook(scheme)
        answer = admin.post(f"/webhooks/{hook.key}/test/", {"body": NAP.decode()}, follow=True)
        assert "Sent a test: started" in text_of(answer)
        row = WebhookDelivery.objects.get()
        assert (row.is_test, row.sent_by, row.outcome) == (True, "ada", "done")
        assert Audit.objects.get(verb="webhook-test").actor == "ada"

    def test_it_may_have_headers(self, admin: Client, make_hook: Make) -> None:
        hook = make_hook("github", only_if="header X-GitHub-Event = push")
        given = {"body": NAP.decode(), "headers": "X-GitHub-Event: push\nnonsense\n: x"}
        admin.post(f"/webhooks/{hook.key}/test/", given)
        assert WebhookDelivery.objects.get().outcome == "done"

    @pytest.mark.parametrize("body", ["", "{", "NaN", '{"a": "\\u0000"}'])
    def test_what_is_not_json_is_not_sent(self, admin: Client, make_hook: Make, body: str) -> None:
        answer = admin.post(f"/webhooks/{make_hook('github').key}/test/", {"body": body})
        assert (answer.status_code, WebhookDelivery.objects.count()) == (422, 0)


class TestChanging:
    def test_each_change_is_in_the_audit_trail(self, admin: Client, make_hook: Make) -> None:
        hook = make_hook("github", name="billing")
        where = f"/webhooks/{hook.key}/"
        admin.post(f"{where}edit/", {**NEW, "id_from": "/id"})
        admin.post(f"{where}pause/")
        admin.post(f"{where}resume/")
        admin.post(f"{where}rotate/", {"old_for": "24"})
        admin.post(f"{where}delete/", {"reason": "the shop has closed"})
        rows = Audit.objects.filter(actor="ada").order_by("key")
        assert [row.verb for row in rows] == [
            "webhook-change",
            "webhook-pause",
            "webhook-resume",
            "webhook-rotate",
            "webhook-delete",
        ]
        assert rows[0].data == {"webhook": "billing", "changed": ["id_from"]}
        assert rows[4].reason == "the shop has closed"
        assert Webhook.objects.count() == 0
        assert "deleted the webhook billing" in text_of(admin.get("/audit/"))

    def test_the_sender_and_the_secret_stay_in_the_form(self, admin: Client, make_hook: Make) -> None:
        hook = make_hook("github", name="billing")
        given = {
            **NEW,
            "scheme": "shared",
            "secret": "another-secret-16",
            "slug": "taken",
            "created_by": "eve",
        }
        admin.post(f"/webhooks/{hook.key}/edit/", given)
        after = Webhook.objects.get()
        assert (after.scheme, after.secret, after.slug) == ("github", hook.secret, hook.slug)
        assert after.created_by == hook.created_by

    def test_a_rotated_secret_is_shown_once(self, admin: Client, make_hook: Make) -> None:
        hook = make_hook("github")
        page = admin.post(f"/webhooks/{hook.key}/rotate/", {"old_for": "24"}).content.decode()
        secret = re.search(r'<code id="new-secret">([^<]+)</code>', page)
        assert secret is not None
        assert deliver(hook, NAP, signed("github", NAP, id="new", secret=secret[1])).status_code == 202
        assert deliver(hook, NAP, signed("github", NAP, id="old")).status_code == 202

    @pytest.mark.parametrize("given", [{"old_for": "99"}, {"old_for": "24", "secret": "short"}])
    def test_a_bad_rotation_changes_nothing(
        self, admin: Client, make_hook: Make, given: dict[str, str]
    ) -> None:
        hook = make_hook("github")
        assert admin.post(f"/webhooks/{hook.key}/rotate/", given).status_code == 422
        assert Webhook.objects.get().secret == hook.secret

    def test_what_was_deleted_meanwhile_is_not_changed(self, make_hook: Make) -> None:
        hook, admin = make_hook("github"), factories.person("admin")
        hooks.delete(Webhook.objects.get(), by=admin, reason="only a test")
        with pytest.raises(Http404):
            hooks.rotate(hook, "a-secret-of-at-least-16", old_for=timedelta(0), by=admin)
        with pytest.raises(Http404):
            hooks.change(hook, {"name": "another"}, by=admin)
        assert Audit.objects.order_by("key").last().verb == "webhook-delete"  # type: ignore[union-attr]

    def test_a_deletion_needs_a_reason(self, admin: Client, make_hook: Make) -> None:
        hook = make_hook("github")
        assert admin.post(f"/webhooks/{hook.key}/delete/", {"reason": " "}).status_code == 422
        assert Webhook.objects.count() == 1

    def test_a_secret_that_cannot_be_read_is_explained(
        self, admin: Client, make_hook: Make, settings: Any
    ) -> None:
        hook = make_hook("github")
        settings.SECRET_KEY_FALLBACKS = []
        Webhook.objects.update(secret=hook.secret.replace("v1.", "v1.x", 1))
        said = text_of(admin.get(f"/webhooks/{hook.key}/"))
        assert "No delivery can be verified" in said
        answer = admin.post(f"/webhooks/{hook.key}/test/", {"body": "{}"})
        assert answer.status_code == 409


class TestAccess:
    @pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
    def test_only_admins_see_hooks_and_their_link(
        self, signed_in: SignIn, make_hook: Make, role: str
    ) -> None:
        hook, client = make_hook("github"), signed_in(role)
        deliver(hook, NAP, signed("github", NAP))
        row = WebhookDelivery.objects.get()
        for where in (
            "/webhooks/",
            "/webhooks/new/",
            f"/webhooks/{hook.key}/",
            f"/webhooks/{hook.key}/edit/",
            f"/webhooks/{hook.key}/deliveries/{row.key}/",
        ):
            answer = client.get(where)
            assert (answer.status_code, hook.slug in answer.content.decode()) == (403, False)
        assert "/webhooks/" not in client.get("/").content.decode()

    def test_admins_have_a_link(self, admin: Client) -> None:
        assert 'href="/webhooks/"' in admin.get("/").content.decode()
        assert "No webhooks yet" in admin.get("/webhooks/").content.decode()

    def test_a_denied_attempt_is_recorded(self, operator: Client, make_hook: Make) -> None:
        hook = make_hook("github")
        assert operator.post(f"/webhooks/{hook.key}/pause/").status_code == 403
        row = Audit.objects.get(outcome="denied")
        assert (row.verb, row.actor, row.data) == ("webhook-pause", "oli", {"webhook": hook.name})

    def test_a_hook_that_is_not_there_is_not_found(self, admin: Client) -> None:
        for where in ("/webhooks/9/", "/webhooks/9/edit/", "/webhooks/9/deliveries/1/"):
            assert admin.get(where).status_code == 404


def test_the_list_asks_few_questions_however_many_hooks_there_are(
    admin: Client, make_hook: Make, django_assert_max_num_queries: Any
) -> None:
    for n in range(5):
        hook = make_hook("github", name=f"hook {n}")
        deliver(hook, NAP, signed("github", NAP))
    with django_assert_max_num_queries(12):
        page = admin.get("/webhooks/").content.decode()
    assert page.count("started") == 5
