"""Stripe: `Stripe-Signature: t=…,v1=…`, where several `v1` may come; the id is that of the event in the payload."""

from __future__ import annotations

from collections.abc import Sequence

from engine.values.json_type import JSON
from studio.webhooks.incoming import Incoming
from studio.webhooks.refusals import NotGenuineError
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

MOST_PARTS = 20


class Stripe(Plain):
    """Stripe makes the secret and shows it on its page of the endpoint."""

    name = "stripe"
    label = "Stripe"
    makes_secrets = False
    signature_header = "stripe-signature"

    def verify(self, incoming: Incoming, secrets: Sequence[str], details: Details, now: float) -> None:
        parts = incoming.headers.needed("Stripe-Signature").split(",")[:MOST_PARTS]
        pairs = [part.strip().partition("=")[::2] for part in parts]
        times = [value for name, value in pairs if name == "t"]
        if len(times) != 1:
            raise NotGenuineError("The header Stripe-Signature needs one t=.")
        signed = f"{check_time(times[0], now)}.".encode() + incoming.body
        if not is_signed(signed, [value for name, value in pairs if name == "v1"], secrets):
            raise wrong_signature()

    def id_in(self, payload: JSON, details: Details) -> str:
        return checked_id(member(payload, "id"))

    def sign(self, body: bytes, secret: str, details: Details, *, id: str, now: float) -> dict[str, str]:
        signature = hex_hmac(secret, f"{int(now)}.".encode() + body)
        return header_of({"Stripe-Signature": f"t={int(now)},v1={signature}"})


STRIPE = Stripe()
