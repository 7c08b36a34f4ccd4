"""The secrets of hooks, and the bodies of deliveries, encrypted with the project's keys."""

from __future__ import annotations

from datetime import datetime

from django.core.exceptions import ImproperlyConfigured

from engine.declare.secrets import keys_of_settings
from engine.values.errors import SecretKeyError
from studio.models import Webhook


class UnreadableSecretError(Exception):
    """A secret cannot be decrypted: its key is not in the settings. The message is for admins."""


def sealed(text: str) -> str:
    """Return a text encrypted. Raises UnreadableSecretError without valid keys."""
    try:
        return keys_of_settings().encrypt(text)
    except ImproperlyConfigured as error:
        raise UnreadableSecretError(str(error)) from None


def opened(token: str) -> str:
    """Return what was encrypted. Raises UnreadableSecretError."""
    try:
        return keys_of_settings().decrypt(token)
    except (SecretKeyError, ImproperlyConfigured) as error:
        raise UnreadableSecretError(str(error)) from None


def sealed_body(body: bytes) -> str:
    """Return a body encrypted. Any byte is a character of Latin-1, and most bodies stay as long as they are."""
    return sealed(body.decode("latin1"))


def opened_body(token: str) -> bytes:
    return opened(token).encode("latin1")


def secrets_of(hook: Webhook, now: datetime) -> list[str]:
    """Return the secrets that are valid now, the newest first. Raises UnreadableSecretError if none can be read."""
    tokens = [hook.secret, *([hook.old_secret] if hook.has_old_secret_at(now) else [])]
    found, problem = [], None
    for token in tokens:
        try:
            found.append(opened(token))
        except UnreadableSecretError as error:
            problem = error
    if not found and problem is not None:
        raise problem
    return found
