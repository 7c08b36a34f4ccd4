"""Slack: an HMAC over version, time and body in `X-Slack-Signature`; events, slash commands and interactions."""

from __future__ import annotations

from collections.abc import Sequence

from engine.values.json_type import JSON
from studio.webhooks.incoming import Incoming
from studio.webhooks.schemes.scheme import (
    Details,
    Plain,
    check_time,
    checked_id,
    header_of,
    hex_hmac,
    is_signed,
    member,
    wrong_signature,
)

START = "v0="


class Slack(Plain):
    """Slack makes the secret. Events have an `event_id`, commands and interactions a `trigger_id`."""

    name = "slack"
    label = "Slack"
    makes_secrets = False
    signature_header = "x-slack-signature"

    def verify(self, incoming: Incoming, secrets: Sequence[str], details: Details, now: float) -> None:
        seconds = check_time(incoming.headers.needed("X-Slack-Request-Timestamp"), now)
        given = incoming.headers.needed("X-Slack-Signature")
        signed = f"v0:{seconds}:".encode() + incoming.body
        if not given.startswith(START) or not is_signed(signed, [given[len(START) :]], secrets):
            raise wrong_signature()

    def id_in(self, payload: JSON, details: Details) -> str:
        return checked_id(member(payload, "event_id") or member(payload, "trigger_id"))

    def sign(self, body: bytes, secret: str, details: Details, *, id: str, now: float) -> dict[str, str]:
        signature = START + hex_hmac(secret, f"v0:{int(now)}:".encode() + body)
        return header_of({"X-Slack-Request-Timestamp": str(int(now)), "X-Slack-Signature": signature})


SLACK = Slack()
