"""Only who knows the secret is heard, whatever the headers hold."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

import pytest

from engine.models import Instance
from studio.models import Webhook, WebhookDelivery
from studio.webhooks import hooks
from studio.webhooks.incoming import Headers, Incoming
from studio.webhooks.refusals import NotGenuineError
from studio.webhooks.schemes import SCHEMES
from studio.webhooks.schemes.scheme import Details
from tests.studio import factories
from tests.studio.webhooks.conftest import NAP, SECRETS, Make, deliver, signed

EACH = pytest.mark.parametrize("scheme", SCHEMES)
SIGNED = pytest.mark.parametrize("scheme", [name for name in SCHEMES if name != "shared"])
TIMED = pytest.mark.parametrize("scheme", ["standard", "stripe", "slack"])

NO_SIGNATURES = [
    *(
        "",
        ",",
        "v1",
        "v1,",
        "v1,!!!!",
        "v1a,abc",
        "none",
        "v1,ÿÿ",
        "sha256=",
        "sha256=zz",
        "v0=",
        "t=",
        "t=1,v1=",
    ),
    *("v1," + "A" * 10_000, "v1,A " * 5_000, "sha1=" + "0" * 64, "sha256=" + "é" * 64, "\x01", "=,=,="),
]


def verify(scheme: str, headers: dict[str, str], body: bytes, secret: str, now: float) -> None:
    SCHEMES[scheme].verify(Incoming.made(headers, body), [secret], Details(), now)


class TestReferenceVectors:
    """What the senders' own documents and libraries say."""

    def test_standard_webhooks(self) -> None:
        # From the reference tests of the specification.
        headers = {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        }
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        verify("standard", headers, b'{"test": 2432232314}', secret, 1614265330)

    def test_github(self) -> None:
        # From "Validating webhook deliveries".
        headers = {
            "X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        }
        verify("github", headers, b"Hello, World!", "It's a Secret to Everybody", 0)

    def test_slack(self) -> None:
        # From "Verifying requests from Slack".
        body = (
            b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
            b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
            b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
            b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
        )
        headers = {
            "X-Slack-Request-Timestamp": "1531420618",
            "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        }
        verify("slack", headers, body, "8f742231b10e8888abcd99yyyzzz85a5", 1531420618)

    def test_stripe(self) -> None:
        # No vector is published; openssl made this one: printf '1492774577.{"id":"evt_1"}' | openssl dgst -hmac …
        signature = "799c4ba7bb339f3c8601adfd112f0e477c930a268be1243d341abb8286501c2f"
        headers = {"Stripe-Signature": f"t=1492774577,v1={signature}"}
        verify("stripe", headers, b'{"id":"evt_1"}', "whsec_test_secret", 1492774577)


@pytest.mark.django_db
class TestSignatures:
    @EACH
    def test_the_right_one_starts_an_instance(self, make_hook: Make, scheme: str) -> None:
        hook = make_hook(scheme)
        answer = deliver(hook, NAP, signed(scheme, NAP))
        assert answer.status_code == 202, answer.content
        found = Instance.objects.get()
        assert (found.workflow, found.params, found.started_by) == (
            "nap",
            {"seconds": 1},
            f"webhook {hook.name}",
        )
        assert answer.json()["instance"] == found.id

    @EACH
    def test_another_secret_is_refused_and_nothing_is_stored(self, make_hook: Make, scheme: str) -> None:
        hook = make_hook(scheme)
        other = "whsec_" + base64.b64encode(b"another key of the same.").decode()
        answer = deliver(hook, NAP, signed(scheme, NAP, secret=other))
        assert (answer.status_code, answer["Content-Type"]) == (401, "application/problem+json")
        assert_nothing(hook, refused=1)

    @EACH
    def test_a_missing_one_is_refused(self, make_hook: Make, scheme: str) -> None:
        hook = make_hook(scheme)
        assert deliver(hook, NAP, {}).status_code == 401
        assert_nothing(hook, refused=1)

    @SIGNED
    def test_one_changed_byte_is_refused(self, make_hook: Make, scheme: str) -> None:
        hook = make_hook(scheme)
        assert deliver(hook, NAP.replace(b"1", b"9"), signed(scheme, NAP)).status_code == 401
        # The same value, written anew.
        assert deliver(hook, NAP.replace(b" ", b""), signed(scheme, NAP)).status_code == 401
        assert_nothing(hook, refused=2)

    @TIMED
    @pytest.mark.parametrize(("seconds", "status"), [(-360, 401), (360, 401), (-240, 202), (240, 202)])
    def test_it_may_be_five_minutes_old_or_early(
        self, make_hook: Make, scheme: str, seconds: int, status: int
    ) -> None:
        hook = make_hook(scheme)
        assert deliver(hook, NAP, signed(scheme, NAP, at=time.time() + seconds)).status_code == status

    @TIMED
    @pytest.mark.parametrize(
        "text", ["NaN", "1e309", "-1", "", "1.5", "inf", "9" * 13, "9" * 5000, "１２", "0x1", " "]
    )
    def test_a_time_that_is_none_is_refused(self, make_hook: Make, scheme: str, text: str) -> None:
        hook, now = make_hook(scheme), str(int(time.time()))
        headers = {name: value.replace(now, text) for name, value in signed(scheme, NAP).items()}
        assert deliver(hook, NAP, headers).status_code in (400, 401)
        assert_nothing(hook, refused=1)

    @EACH
    @pytest.mark.parametrize("text", NO_SIGNATURES)
    def test_a_signature_that_is_none_is_refused(self, make_hook: Make, scheme: str, text: str) -> None:
        hook = make_hook(scheme)
        header = SCHEMES[scheme].signature_header or "x-webhook-secret"
        headers = {
            name: text if name.lower() == header else value for name, value in signed(scheme, NAP).items()
        }
        assert deliver(hook, NAP, headers).status_code in (400, 401)
        assert_nothing(hook, refused=1)

    def test_stripe_may_send_several_and_takes_only_v1(self, make_hook: Make) -> None:
        hook = make_hook("stripe")
        right = signed("stripe", NAP)["Stripe-Signature"]
        moment, _, signature = right.partition(",")
        several = f"{moment},v1={'0' * 64},{signature},v0=abc"
        assert deliver(hook, NAP, {"Stripe-Signature": several}).status_code == 202
        as_v0 = right.replace("v1=", "v0=")
        assert deliver(hook, NAP, {"Stripe-Signature": as_v0}).status_code == 401
        two_times = f"{moment},{right}"
        assert deliver(hook, NAP, {"Stripe-Signature": two_times}).status_code == 401

    def test_a_standard_one_may_be_the_second(self, make_hook: Make) -> None:
        hook = make_hook("standard")
        headers = signed("standard", NAP)
        wrong = "v1," + base64.b64encode(b"0" * 32).decode()
        headers["webhook-signature"] = f"v1a,{'A' * 86}== {wrong} {headers['webhook-signature']}"
        assert deliver(hook, NAP, headers).status_code == 202

    @pytest.mark.parametrize(
        ("id", "status"), [("a.b", 400), ("x" * 10_000, 400), ("x" * 255, 202), ("", 401)]
    )
    def test_the_id_of_a_standard_one_is_checked(self, make_hook: Make, id: str, status: int) -> None:
        hook = make_hook("standard")
        assert deliver(hook, NAP, signed("standard", NAP, id=id)).status_code == status


class TestRepeatedHeaders:
    """Only an ASGI server tells them apart."""

    @EACH
    def test_two_of_one_name_are_refused(self, scheme: str) -> None:
        headers = signed(scheme, NAP)
        header = SCHEMES[scheme].signature_header or "x-webhook-secret"
        twice = [*headers.items(), *((n, v) for n, v in headers.items() if n.lower() == header)]
        with pytest.raises(NotGenuineError, match="was sent twice") as caught:
            SCHEMES[scheme].verify(Incoming(Headers(twice), NAP), [SECRETS[scheme]], Details(), time.time())
        assert caught.value.status == 400


@pytest.mark.django_db
class TestRotation:
    @EACH
    def test_two_secrets_are_valid_until_a_moment(
        self, make_hook: Make, scheme: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hook, new = make_hook(scheme), another(scheme)
        hooks.rotate(hook, new, old_for=hooks.OLD_SECRET_FOR["24"], by=factories.person("admin"))
        assert deliver(hook, NAP, signed(scheme, NAP, id="old")).status_code == 202
        other = NAP.replace(b"1", b"2")
        assert deliver(hook, other, signed(scheme, other, id="new", secret=new)).status_code == 202
        Webhook.objects.update(old_secret_until=factories.ago(seconds=1))
        assert deliver(hook, NAP, signed(scheme, NAP, id="late")).status_code == 401

    def test_a_leaked_secret_is_invalid_at_once(self, make_hook: Make) -> None:
        hook = make_hook("github")
        hooks.rotate(hook, another("github"), old_for=hooks.OLD_SECRET_FOR["0"], by=factories.person("admin"))
        assert deliver(hook, NAP, signed("github", NAP)).status_code == 401
        assert Webhook.objects.get().old_secret == ""

    def test_secrets_are_stored_encrypted(self, make_hook: Make) -> None:
        for scheme in SCHEMES:
            hook = make_hook(scheme)
            assert SECRETS[scheme] not in hook.secret
            assert hook.secret.startswith("v1.")

    def test_without_the_key_of_the_secret_the_sender_is_told_to_come_again(
        self, make_hook: Make, settings: Any
    ) -> None:
        hook = make_hook("github")
        settings.SECRET_KEY = "another key, which has encrypted nothing so far"
        answer = deliver(hook, NAP, signed("github", NAP))
        assert (answer.status_code, answer.json()["code"]) == (503, "secret_key_missing")
        assert answer["Retry-After"]


def another(scheme: str) -> str:
    makes: Callable[[], str] = SCHEMES[scheme].new_secret
    secret = makes()
    SCHEMES[scheme].check_secret(secret)
    return secret


def assert_nothing(hook: Webhook, *, refused: int) -> None:
    hook.refresh_from_db()
    assert (Instance.objects.count(), WebhookDelivery.objects.count(), hook.refused) == (0, 0, refused)
