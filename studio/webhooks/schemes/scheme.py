"""What a scheme does: verify, sign, and say what its secrets look like."""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from engine.values.json_type import JSON
from studio.webhooks.incoming import Incoming
from studio.webhooks.refusals import NotGenuineError
from studio.webhooks.sources import text_of

TOLERANCE_S = 300
SHORTEST_SECRET, LONGEST_SECRET = 16, 255
LONGEST_ID = 255
_SECONDS = re.compile(r"[0-9]{1,12}")
_HEX = re.compile(r"[0-9a-f]{64}")


class SecretRefusedError(ValueError):
    """A secret does not fit its scheme; the message says what it should be."""


@dataclass(frozen=True, slots=True)
class Details:
    """What a hook adds to its scheme."""

    secret_header: str = ""  # in which the shared secret comes
    id_from: str = ""  # a header, or a path into the payload, with the id of a delivery


class Scheme(Protocol):
    """A way of signing."""

    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def makes_secrets(self) -> bool:
        """Whether we choose the secret; otherwise the sender shows it."""

    @property
    def signature_header(self) -> str: ...
    @property
    def kept_headers(self) -> tuple[str, ...]:
        """Headers, in lower case, that a delivery keeps besides those of its mapping."""

    def verify(self, incoming: Incoming, secrets: Sequence[str], details: Details, now: float) -> None:
        """Raise NotGenuineError unless one of the secrets has signed the delivery."""

    def id_of(self, incoming: Incoming, details: Details) -> str:
        """Return the sender's id of a verified delivery, if a header has it."""

    def id_in(self, payload: JSON, details: Details) -> str:
        """Return the sender's id of a delivery, if the payload has it."""

    def sign(self, body: bytes, secret: str, details: Details, *, id: str, now: float) -> dict[str, str]:
        """Return the headers of a delivery of our own."""

    def new_secret(self) -> str: ...
    def check_secret(self, secret: str) -> None:
        """Raise SecretRefusedError."""


class Plain:
    """What most schemes have in common: a secret that is any text, and ids that are not in the payload."""

    makes_secrets = True
    kept_headers: tuple[str, ...] = ()

    def id_of(self, incoming: Incoming, details: Details) -> str:
        return ""

    def id_in(self, payload: JSON, details: Details) -> str:
        return ""

    def new_secret(self) -> str:
        return secrets.token_urlsafe(32)

    def check_secret(self, secret: str) -> None:
        is_long_enough = SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET
        if not is_long_enough or not secret.isascii() or not secret.isprintable() or " " in secret:
            rule = f"{SHORTEST_SECRET} to {LONGEST_SECRET} printable ASCII characters without blanks"
            raise SecretRefusedError(f"A secret has {rule}.")


def hex_hmac(secret: str, signed: bytes) -> str:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def is_signed(signed: bytes, given: Sequence[str], secrets: Sequence[str]) -> bool:
    """Tell whether one of the secrets makes one of the given HMACs in hexadecimal, in constant time for each."""
    wanted = [hex_hmac(secret, signed) for secret in secrets]
    candidates = [one for one in given if _HEX.fullmatch(one)]
    return any(hmac.compare_digest(one, other) for one in candidates for other in wanted)


def check_time(text: str, now: float) -> str:
    """Return the seconds of a timestamp. Raises NotGenuineError if it is none, or more than 5 minutes off."""
    if not _SECONDS.fullmatch(text):
        raise NotGenuineError("The timestamp is not a number of seconds.", code="invalid_timestamp")
    if math.fabs(now - int(text)) > TOLERANCE_S:
        raise NotGenuineError("The timestamp is more than 5 minutes off.", code="wrong_time")
    return text


def wrong_signature() -> NotGenuineError:
    return NotGenuineError("No signature fits the secret of this webhook.")


def checked_id(text: str) -> str:
    """Return the id of a delivery. Raises NotGenuineError for one that cannot be stored."""
    if len(text) > LONGEST_ID or not text.isprintable():
        rule = f"The id of a delivery has {LONGEST_ID} printable characters at most."
        raise NotGenuineError(rule, status=400, code="invalid_delivery_id")
    return text


def member(payload: JSON, name: str) -> str:
    """Return a text in the payload, empty if there is none."""
    found: Any = payload.get(name) if isinstance(payload, dict) else None
    return text_of(found) or ""


def header_of(pairs: Mapping[str, str], kind: str = "application/json") -> dict[str, str]:
    return {"Content-Type": kind, **pairs}
