"""Encrypt the values of declared secret types with the project's keys. They are never stored in another form.

The keys come from the setting SECRET_KEYS of REPRISE, a list of long random strings, or else from SECRET_KEY. The
first key encrypts. All keys decrypt, and so do SECRET_KEY and SECRET_KEY_FALLBACKS. To rotate a key, add a new one
before it; remove the old one when nothing that it encrypted is left. See docs/secrets.md.
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

from engine.configuration import setting
from engine.values.errors import SecretKeyError
from engine.values.serialization import JSON, Unreadable, decode_strict
from engine.values.serialization.envelope import open_envelope, replaced, use_cipher

VERSION = "v1"
SETTING = "SECRET_KEYS"
SHORTEST_KEY = 32  # characters

__all__ = ["SecretKeys", "are_equal", "decrypted", "install", "keys_of_settings", "own_keys"]


class SecretKeys:
    """Encrypts with the first of its keys. A token names its key: `v1.<id of the key>.<Fernet token>`."""

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
        """Return the text of a token. Raises SecretKeyError if its key is missing."""
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
    """The keys in the current settings: tests change them."""

    def encrypt(self, text: str) -> str:
        return keys_of_settings().encrypt(text)

    def decrypt(self, token: str) -> str:
        return keys_of_settings().decrypt(token)


def install() -> None:
    """Encrypt secrets with the keys of the settings from now on."""
    use_cipher(_OfSettings())


def keys_of_settings() -> SecretKeys:
    """Return the project's keys, the encrypting one first. Raises ImproperlyConfigured."""
    return _made((*own_keys(), *map(_bytes, (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))))


def own_keys() -> tuple[bytes, ...]:
    """Return the setting SECRET_KEYS. Raises ImproperlyConfigured for an invalid key."""
    given = setting(SETTING)
    if not all(isinstance(key, str | bytes) and len(key) >= SHORTEST_KEY for key in given):
        raise ImproperlyConfigured(
            f'REPRISE["{SETTING}"] must be a list of random strings of at least {SHORTEST_KEY} characters, the newest '
            "first."
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
    """Return a stored document with its secrets decrypted, as JSON. Compare it; never show or store it.

    Tests and programs read a secret of an instance with `decrypted(instance.output)`. Raises SecretKeyError.
    """
    plain: JSON = replaced(value, lambda found: decrypted(decode_strict(open_envelope(found))))
    return plain


def are_equal(one: object, other: object) -> bool:
    """Return whether two stored documents are equal. The same secret, encrypted again, is a different text."""
    return _canonical(one) == _canonical(other)


def _canonical(value: object) -> str:
    # As text, because in Python 1, 1.0 and True are equal. The order of keys does not matter.
    if isinstance(value, Unreadable):
        return value.text
    return json.dumps(decrypted(value), sort_keys=True)
