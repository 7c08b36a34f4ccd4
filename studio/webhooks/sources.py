"""Where a value comes from: a place in the payload, a header, or a constant. Nothing here is executed.

A source is one line of text:

* `/data/object/id`: a JSON Pointer (RFC 6901) into the payload; `body` is the whole payload.
* `header X-GitHub-Event`: a header of the delivery.
* `= "paid"`, `= 3`, `= paid`: a constant, as JSON or a plain word.

A text may be joined from several: `= order- + /data/number`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from engine.values.json_type import JSON
from engine.values.serialization import InvalidJSON, read_json

LONGEST = 500
MOST_TOKENS = 32
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]*")
_HEADER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
_ESCAPE = re.compile(r"~(?![01])")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
# Headers that may hold a secret or a signature are not kept, so nothing can be taken from them.
_SECRET = re.compile(r"authorization|cookie|signature|secret|token|api-?key|password", re.IGNORECASE)


class SourceError(ValueError):
    """A text is not a source; the message says what it should be."""


class Missing:
    """What a source yields if there is nothing at its place. JSON null is a value."""


MISSING: Final = Missing()


@dataclass(frozen=True, slots=True)
class Given:
    """What sources read: the payload, and headers by their name in lower case."""

    payload: JSON
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Pointer:
    """A place in the payload."""

    tokens: tuple[str, ...]

    def of(self, given: Given) -> Any:
        found: Any = given.payload
        for token in self.tokens:
            if isinstance(found, dict) and token in found:
                found = found[token]
            elif isinstance(found, list) and _INDEX.fullmatch(token) and int(token) < len(found):
                found = found[int(token)]
            else:
                return MISSING
        return found


@dataclass(frozen=True, slots=True)
class Header:
    """A header of the delivery; its name is in lower case."""

    name: str

    def of(self, given: Given) -> Any:
        return given.headers.get(self.name, MISSING)


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value for every delivery."""

    value: JSON

    def of(self, given: Given) -> Any:
        return self.value


Source = Pointer | Header | Constant


@lru_cache(maxsize=4096)
def source_of(text: str) -> Source:
    """Read a source. Raises SourceError."""
    text = text.strip()
    if len(text) > LONGEST:
        raise SourceError(f"It may have {LONGEST} characters at most.")
    if text == "body":
        return Pointer(())
    if text.startswith("/"):
        return Pointer(tokens_of(text))
    if text.startswith("="):
        return Constant(constant_of(text[1:].strip()))
    if text.lower().startswith("header "):
        return Header(header_name(text[7:].strip()))
    rule = "Write a path such as /data/id, `body`, `header X-Name`, or a constant such as = paid."
    raise SourceError(f'"{text[:80]}" is not a source. {rule}')


def header_name(name: str) -> str:
    """Return the name of a header in lower case. Raises SourceError if it is none, or may hold a secret."""
    if not _HEADER.fullmatch(name):
        raise SourceError(f'"{name[:80]}" is not the name of a header.')
    if _SECRET.search(name):
        raise SourceError(f"{name} may hold a secret: it is not kept, so nothing can be taken from it.")
    return name.lower()


def tokens_of(pointer: str) -> tuple[str, ...]:
    """Return the parts of a JSON Pointer. Raises SourceError."""
    if _ESCAPE.search(pointer):
        raise SourceError(f'In "{pointer[:80]}", write ~0 for ~ and ~1 for / within a name.')
    tokens = tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    if len(tokens) > MOST_TOKENS:
        raise SourceError(f"A path has {MOST_TOKENS} parts at most.")
    return tokens


def constant_of(text: str) -> JSON:
    """Return a constant: JSON, or a word without quotes. Raises SourceError."""
    try:
        return read_json(text, what="constant")
    except InvalidJSON:
        if _WORD.fullmatch(text):
            return text
        raise SourceError(f'"{text[:80]}" is not JSON. Put a text into quotes.') from None


@dataclass(frozen=True, slots=True)
class Text:
    """A text joined from the texts of its parts."""

    parts: tuple[Source, ...]

    def of(self, given: Given) -> str | Missing:
        """Return the text, or MISSING if a part is missing, null, or not a text or whole number."""
        texts = [text_of(part.of(given)) for part in self.parts]
        return "".join(text for text in texts if text is not None) if None not in texts else MISSING


@lru_cache(maxsize=4096)
def joined(text: str) -> Text:
    """Read sources joined by ` + `. Raises SourceError."""
    return Text(tuple(source_of(part) for part in text.strip().split(" + ")))


def text_of(value: Any) -> str | None:
    """Return a text or a whole number as text; None for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def header_names(sources: Sequence[Source]) -> set[str]:
    """Return the headers that sources read."""
    return {source.name for source in sources if isinstance(source, Header)}
