"""Standard Webhooks (https://www.standardwebhooks.com): `webhook-id`, `webhook-timestamp` and `webhook-signature`."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from standardwebhooks.webhooks import Webhook

from studio.webhooks.incoming import Incoming
from studio.webhooks.refusals import NotGenuineError
from studio.webhooks.schemes.scheme import (
    Details,
    Plain,
    SecretRefusedError,
    check_time,
    checked_id,
    header_of,
    wrong_signature,
)

PREFIX = "whsec_"
MOST_SIGNATURES = 20
# Only such signatures are compared: the library's own reader of the header raises for many others.
_SIGNATURE = re.compile(r"v1,[A-Za-z0-9+/]{43}=")


class Standard(Plain):
    """The id is signed, too. Several signatures may come, for the rotation of the sender's secret."""

    name = "standard"
    label = "Standard Webhooks"
    signature_header = "webhook-signature"
    kept_headers = ("webhook-id",)

    def verify(self, incoming: Incoming, secrets: Sequence[str], details: Details, now: float) -> None:
        seconds = check_time(incoming.headers.needed("webhook-timestamp"), now)
        signed_id = self.id_of(incoming, details)
        given = incoming.headers.needed("webhook-signature").split(" ")[:MOST_SIGNATURES]
        wanted = [_signature(secret, incoming.body, signed_id, int(seconds)) for secret in secrets]
        signatures = [one for one in given if _SIGNATURE.fullmatch(one)]
        if not any(hmac.compare_digest(one, other) for one in signatures for other in wanted):
            raise wrong_signature()

    def id_of(self, incoming: Incoming, details: Details) -> str:
        found = checked_id(incoming.headers.needed("webhook-id"))
        if "." in found:  # it ends where the first dot of the signed text is
            raise NotGenuineError("The id of a delivery has no dot.", status=400, code="invalid_delivery_id")
        return found

    def sign(self, body: bytes, secret: str, details: Details, *, id: str, now: float) -> dict[str, str]:
        signature = _signature(secret, body, id, int(now))
        return header_of(
            {"webhook-id": id, "webhook-timestamp": str(int(now)), "webhook-signature": signature}
        )

    def new_secret(self) -> str:
        return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()

    def check_secret(self, secret: str) -> None:
        try:
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except (ValueError, binascii.Error):
            key = b""
        if not secret.startswith(PREFIX) or not 16 <= len(key) <= 64:
            raise SecretRefusedError(f"A secret is {PREFIX} and 16 to 64 bytes in base64.")


def _signature(secret: str, body: bytes, delivery_id: str, seconds: int) -> str:
    """Return what the library signs; empty for a body that is not UTF-8, which the specification leaves out."""
    try:
        return Webhook(secret).sign(delivery_id, datetime.fromtimestamp(seconds, UTC), body.decode())
    except UnicodeDecodeError:
        return ""


STANDARD = Standard()
