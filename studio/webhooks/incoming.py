"""A delivery as it arrived: raw headers and the raw body, before anything is parsed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.http import HttpRequest

from studio.webhooks.refusals import NotGenuineError


class Headers:
    """The headers of a delivery, each as often as it was sent. Names are in lower case."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name.lower(), []).append(value)

    @classmethod
    def of(cls, request: HttpRequest) -> Headers:
        """Return those of a request. Under WSGI, the server has joined repeated headers with commas."""
        scope = getattr(request, "scope", None)
        if scope is None:
            return cls(request.headers.items())
        return cls((name.decode("latin1"), value.decode("latin1")) for name, value in scope["headers"])

    def one(self, name: str) -> str:
        """Return the value of a header that must not be there twice; empty if it is missing.

        Raises NotGenuineError for a repeated header, and for one that is not printable ASCII.
        """
        values = self._values.get(name.lower(), [])
        if len(values) > 1:
            raise NotGenuineError(f"The header {name} was sent twice.", status=400, code="repeated_header")
        value = values[0].strip() if values else ""
        if not value.isascii() or not (value.isprintable() or not value):
            raise NotGenuineError(
                f"The header {name} is not printable ASCII.", status=400, code="invalid_header"
            )
        return value

    def needed(self, name: str) -> str:
        """Return the same. Raises NotGenuineError if it is missing or empty, too."""
        value = self.one(name)
        if not value:
            raise NotGenuineError(f"The header {name} is missing.")
        return value

    def some(self, names: Iterable[str]) -> dict[str, str]:
        """Return the headers with these names, in lower case, that are there once and readable."""
        return {name: value for name in names if (value := self.one(name))}


@dataclass(frozen=True, slots=True)
class Incoming:
    """A delivery."""

    headers: Headers
    body: bytes

    @classmethod
    def made(cls, headers: Mapping[str, str], body: bytes) -> Incoming:
        return cls(Headers(headers.items()), body)

    @property
    def is_form(self) -> bool:
        kind = self.headers.one("Content-Type").partition(";")[0].strip().lower()
        return kind == "application/x-www-form-urlencoded"
