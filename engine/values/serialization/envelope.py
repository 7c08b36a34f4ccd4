"""The form of an encrypted value in a JSON document, `{"$reprise-secret": "<token>"}`, and how it is shown: `••••••`.

Only the engine writes this object. Its key is reserved and refused in documents from outside, so nothing that is sent
in is taken for a secret or decrypted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from typing import Any, Protocol

from engine.values.errors import InvalidValueError
from engine.values.serialization.rules import show_path

KEY = "$reprise-secret"
MASK = "••••••"
# How the key appears in a text made by the writer. Inside a string its quotes would be escaped.
MARK = f'"{KEY}":'

_MASKS = re.compile(r"\*{10}|[•●]{3,}")
# An envelope in a stored text, or the part of it that is left at the end of a truncated text.
_IN_TEXT = re.compile(rf'\{{\s*"{re.escape(KEY)}"\s*:\s*(?:"[^"]*(?:"\s*\}}?|$)|$)')

MASK_REFUSED = "This is the mask of a secret, not the secret. Enter its value."
RESERVED = (
    f'The key "{KEY}" is reserved: it marks encrypted values. Rename it. To have a value encrypted, declare '
    "its type as pydantic's SecretStr, SecretBytes or Secret."
)


class Cipher(Protocol):
    """Encrypts the texts of secrets. `engine.declare.secrets` makes one from the project's keys."""

    def encrypt(self, text: str) -> str: ...

    def decrypt(self, token: str) -> str:
        """Return the text of a token. Raises SecretKeyError if the key that it needs is missing."""


class _Anything(Container[str]):
    def __contains__(self, token: object) -> bool:
        return True


# For documents read from the database.
STORED: Container[str] = _Anything()

_cipher: Cipher | None = None


def use_cipher(cipher: Cipher) -> None:
    """Encrypt and decrypt with this cipher from now on."""
    global _cipher
    _cipher = cipher


def cipher() -> Cipher:
    if _cipher is None:
        raise RuntimeError("Secrets need the project's keys: call django.setup() first.")
    return _cipher


def enclose(text: str) -> dict[str, str]:
    """Encrypt the JSON text of a secret."""
    return {KEY: cipher().encrypt(text)}


def is_envelope(value: object) -> bool:
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get(KEY), str)


def open_envelope(value: dict[str, str]) -> str:
    """Decrypt the JSON text of a secret. Raises SecretKeyError."""
    return cipher().decrypt(value[KEY])


def check(value: object, known: Container[str], *, what: str) -> None:
    """Raise InvalidValueError for an object that uses the reserved key, unless its token is a known one."""
    for path, found in _uses(value, []):
        if not (is_envelope(found) and found[KEY] in known):
            raise InvalidValueError(show_path(path), "reserved_key", RESERVED, what=what)


def replaced(value: Any, by: Callable[[dict[str, str]], Any]) -> Any:
    """Return a copy of a JSON value with each envelope replaced."""
    if isinstance(value, dict):
        if is_envelope(value):
            return by(value)
        return {key: replaced(item, by) for key, item in value.items()}
    return [replaced(item, by) for item in value] if isinstance(value, list) else value


def masked(value: Any) -> Any:
    """Return a stored value with its secrets masked."""
    return replaced(value, lambda _: MASK)


def masked_text(text: str) -> str:
    """Return a stored JSON text, or its beginning, with its secrets masked."""
    return _IN_TEXT.sub(f'"{MASK}"', text) if KEY in text else text


def is_mask(value: object) -> bool:
    """Return whether the value is the mask that a page shows for a secret."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return isinstance(value, str) and _MASKS.fullmatch(value) is not None


def _uses(value: object, path: list[str | int]) -> Iterator[tuple[list[str | int], dict[str, Any]]]:
    if isinstance(value, dict):
        if KEY in value:
            yield path, value
        for key, item in value.items():
            yield from _uses(item, [*path, key])
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _uses(item, [*path, index])
