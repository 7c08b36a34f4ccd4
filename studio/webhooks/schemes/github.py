"""GitHub: an HMAC of the body in `X-Hub-Signature-256`, the id in `X-GitHub-Delivery`."""

from __future__ import annotations

from collections.abc import Sequence

from studio.webhooks.incoming import Incoming
from studio.webhooks.schemes.scheme import (
    Details,
    Plain,
    checked_id,
    header_of,
    hex_hmac,
    is_signed,
    wrong_signature,
)

START = "sha256="
EVENT = "x-github-event"


class GitHub(Plain):
    """Neither the id nor a time is signed: only TLS keeps a delivery from being replayed with another id."""

    name = "github"
    label = "GitHub"
    signature_header = "x-hub-signature-256"
    kept_headers = ("x-github-delivery", EVENT)

    def verify(self, incoming: Incoming, secrets: Sequence[str], details: Details, now: float) -> None:
        given = incoming.headers.needed("X-Hub-Signature-256")
        if not given.startswith(START) or not is_signed(incoming.body, [given[len(START) :]], secrets):
            raise wrong_signature()

    def id_of(self, incoming: Incoming, details: Details) -> str:
        return checked_id(incoming.headers.needed("X-GitHub-Delivery"))

    def sign(self, body: bytes, secret: str, details: Details, *, id: str, now: float) -> dict[str, str]:
        signature = START + hex_hmac(secret, body)
        return header_of({"X-GitHub-Delivery": id, "X-Hub-Signature-256": signature})


GITHUB = GitHub()
