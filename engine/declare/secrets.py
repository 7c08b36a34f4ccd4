"""Encrypt what declared secret types hold, with keys of the project's. It is stored in no other form.

The keys come from REPRISE_SECRET_KEYS, a list of long random texts, or else from SECRET_KEY. The first one encrypts,
all of them decrypt, and so do SECRET_KEY and SECRET_KEY_FALLBACKS. To rotate a key, put a new one before it; the old
one may go when nothing is left that it encrypted. See docs/secrets.md.
"""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Mapping
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from engine.values.errors import SecretKeyError
from engine.values.serialization import JSON, Unreadable, decode_strict
from engine.values.serialization.envelope import open_envelope, replaced, use_cipher

VERSION = "v1"
SETTING = "REPRISE_SECRET_KEYS"
SHORTEST_KEY = 32  # characters

__all__ = ["SecretKeys", "are_equal", "decrypted", "install", "keys_of_settings", "own_keys"]


class SecretKeys:
    """Encrypts with the first of its keys. A token says which one: `v1.<id of the key>.<Fernet token>`."""

    def __init__(self, keys: Mapping[str, Fernet]) -> None:
        self._keys = keys
        self._first = next(iter(keys))

    @property
    def ids(self) -> list[str]:
        return list(self._keys)

    def encrypt(self, text: str) -> str:
        token = self._keys[self._first].encrypt(text.encode()).decode()
        return f"{VERSION}.{self._first}.{token}"

    def decrypt(self, token: str) -> str:
        """Return the text of a token. Raises SecretKeyError where its key is missing."""
        version, _, rest = token.partition(".")
        which, _, encrypted = rest.partition(".")
        key = self._keys.get(which) if version == VERSION else None
        if key is None:
            raise SecretKeyError(which or "unknown", self.ids)
        try:
            return key.decrypt(encrypted).decode()
        except InvalidToken:
            raise SecretKeyError(which, self.ids) from None


class _OfSettings:
    """The keys that the settings say now: tests change them."""

    def encrypt(self, text: str) -> str:
        return keys_of_settings().encrypt(text)

    def decrypt(self, token: str) -> str:
        return keys_of_settings().decrypt(token)


def install() -> None:
    """Have secrets encrypted with the keys of the settings."""
    use_cipher(_OfSettings())


def keys_of_settings() -> SecretKeys:
    """Return the project's keys, the one that encrypts first. Raises ImproperlyConfigured."""
    return _made((*own_keys(), *map(_bytes, (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))))


def own_keys() -> tuple[bytes, ...]:
    """Return what REPRISE_SECRET_KEYS says. Raises ImproperlyConfigured for what cannot be a key."""
    given = getattr(settings, SETTING, None) or ()
    is_list = isinstance(given, list | tuple)
    if not is_list or not all(isinstance(key, str | bytes) and len(key) >= SHORTEST_KEY for key in given):
        raise ImproperlyConfigured(
            f"{SETTING} takes a list of random texts of {SHORTEST_KEY} characters or more, the newest first."
        )
    return tuple(map(_bytes, given))


@functools.lru_cache(maxsize=16)
def _made(keys: tuple[bytes, ...]) -> SecretKeys:
    return SecretKeys({_derived(key, b"id", 4).hex(): _fernet(key) for key in keys})


def _bytes(key: str | bytes) -> bytes:
    return key.encode() if isinstance(key, str) else key


def _fernet(key: bytes) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(_derived(key, b"encryption", 32)))


def _derived(key: bytes, purpose: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt=None, info=b"reprise secrets v1 " + purpose).derive(key)


# Documents


def decrypted(value: Any) -> JSON:
    """Return a stored document with its secrets in clear, as JSON: to be compared, never to be shown or stored.

    `decrypted(instance.output)` is what a test, or a program, reads a secret of an instance by. Raises SecretKeyError.
    """
    plain: JSON = replaced(value, lambda found: decrypted(decode_strict(open_envelope(found))))
    return plain


def are_equal(one: object, other: object) -> bool:
    """Return whether two stored documents say the same; encrypted anew, a secret is another text."""
    return _canonical(one) == _canonical(other)


def _canonical(value: object) -> str:
    # As text: in Python 1, 1.0 and True are equal. The order of keys does not make another document.
    if isinstance(value, Unreadable):
        return value.text
    return json.dumps(decrypted(value), sort_keys=True)
