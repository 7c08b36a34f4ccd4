"""A shared secret in a header: for senders that cannot sign."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from engine.values.json_type import JSON
from studio.webhooks import sources
from studio.webhooks.incoming import Incoming
from studio.webhooks.refusals import NotGenuineError
from studio.webhooks.schemes.scheme import Details, Plain, checked_id, header_of
from studio.webhooks.sources import Given, Header, text_of

SECRET_HEADER = "X-Webhook-Secret"  # noqa: S105  a name


class Shared(Plain):
    """Nothing is signed, so TLS alone protects the secret and the body."""

    name = "shared"
    label = "Shared secret in a header"
    signature_header = ""

    def verify(self, incoming: Incoming, secrets: Sequence[str], details: Details, now: float) -> None:
        given = incoming.headers.needed(details.secret_header or SECRET_HEADER).encode()
        if not any(hmac.compare_digest(given, secret.encode()) for secret in secrets):
            raise NotGenuineError("This is not the secret of this webhook.", code="wrong_secret")

    def id_of(self, incoming: Incoming, details: Details) -> str:
        source = _id_source(details)
        return checked_id(incoming.headers.one(source.name)) if isinstance(source, Header) else ""

    def id_in(self, payload: JSON, details: Details) -> str:
        source = _id_source(details)
        if source is None or isinstance(source, Header):
            return ""
        return checked_id(text_of(source.of(Given(payload, {}))) or "")

    def sign(self, body: bytes, secret: str, details: Details, *, id: str, now: float) -> dict[str, str]:
        source = _id_source(details)
        ids = {source.name: id} if isinstance(source, Header) else {}
        return header_of({details.secret_header or SECRET_HEADER: secret, **ids})


def _id_source(details: Details) -> sources.Source | None:
    return sources.source_of(details.id_from) if details.id_from else None


SHARED = Shared()
