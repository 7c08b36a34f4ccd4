"""The context of a read or write: where the document comes from, and which of its secrets were encrypted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum, auto
from typing import Any

from pydantic import Secret, SecretStr

from engine.values.serialization import envelope
from engine.values.serialization.reading import decode_strict


class Source(Enum):
    """Where a document that is read comes from. Only envelopes from the database are opened."""

    OUTSIDE = auto()
    STORE = auto()
    JUST_WRITTEN = auto()  # written by us just now: each secret is an envelope


_source: ContextVar[Source] = ContextVar("source", default=Source.OUTSIDE)
_issued: ContextVar[set[str]] = ContextVar("issued")


@contextmanager
def reading(source: Source) -> Iterator[None]:
    """Read documents from this source in the block."""
    before = _source.set(source)
    try:
        yield
    finally:
        _source.reset(before)


@contextmanager
def writing() -> Iterator[set[str]]:
    """Collect the tokens of the envelopes made in the block."""
    issued: set[str] = set()
    before = _issued.set(issued)
    try:
        yield issued
    finally:
        _issued.reset(before)


def source() -> Source:
    return _source.get()


def issued() -> set[str]:
    """Return the tokens of the envelopes made so far."""
    return _issued.get()


def opened(value: Any) -> Any:
    """Return a stored document of no declared type, with its secrets as SecretStr, or Secret if they are not text."""
    return envelope.replaced(value, _opened)


def in_clear(value: Any) -> Any:
    """Return the input of a user's validator that runs before secrets are read: JSON, decrypted."""
    if _source.get() is Source.OUTSIDE:
        return value
    clear = envelope.replaced(value, _in_clear)
    if clear is value or clear == value:
        return value
    _source.set(Source.STORE)  # the input of a secret is no longer an envelope
    return clear


def _in_clear(found: dict[str, str]) -> Any:
    return envelope.replaced(decode_strict(envelope.open_envelope(found), what="secret"), _in_clear)


def _opened(found: dict[str, str]) -> SecretStr | Secret[Any]:
    inner = decode_strict(envelope.open_envelope(found), what="secret")
    return SecretStr(inner) if isinstance(inner, str) else Secret(inner)
