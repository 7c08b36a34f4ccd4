"""What a hook takes from a delivery: an id, tags, params or a payload, an event's type, and whether to act at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from engine.values.json_type import JSON
from studio.webhooks import sources
from studio.webhooks.refusals import DeliveryError
from studio.webhooks.sources import MISSING, Given, Source, SourceError, Text

MOST_LINES = 50
MOST_VALUES = 50


class MappingError(ValueError):
    """A field of a mapping cannot be read; `field` names it, and `line` counts from 1."""

    def __init__(self, field: str, message: str, line: int = 0) -> None:
        super().__init__(f"Line {line}: {message}" if line else message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Condition:
    """The value of a source must equal one of these."""

    text: str
    source: Source
    values: tuple[str, ...]  # as JSON: in Python, 1 equals True

    def holds(self, given: Given) -> bool:
        found = self.source.of(given)
        return found is not MISSING and _canonical(found) in self.values


@dataclass(frozen=True, slots=True)
class Rules:
    """A mapping that has been read."""

    id: Text | None
    type: Text | None
    dedup: Text | None
    tags: tuple[tuple[str, Text], ...]
    payload: Source | tuple[tuple[str, Source], ...]
    only_if: tuple[Condition, ...]

    @property
    def headers(self) -> set[str]:
        """The headers that it reads."""
        return sources.header_names([*self._sources()])

    def _sources(self) -> Iterator[Source]:
        for text in (self.id, self.type, self.dedup, *(tag for _, tag in self.tags)):
            yield from text.parts if text is not None else ()
        if isinstance(self.payload, tuple):
            yield from (source for _, source in self.payload)
        else:
            yield self.payload
        yield from (condition.source for condition in self.only_if)


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken from a delivery."""

    payload: JSON
    id: str | None = None
    type: str | None = None
    dedup: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """A mapping as people write it."""

    id: str = ""
    type: str = ""
    dedup: str = ""
    tags: str = ""
    payload: str = ""
    only_if: str = ""

    def read(self) -> Rules:
        """Read it. Raises MappingError."""
        return _read(self)


@lru_cache(maxsize=512)
def _read(written: Written) -> Rules:
    return Rules(
        id=_text("id", written.id),
        type=_text("type", written.type),
        dedup=_text("dedup", written.dedup),
        tags=tuple((line, _required("tags", line, number)) for number, line in _lines("tags", written.tags)),
        payload=_payload(written.payload),
        only_if=tuple(_condition(line, number) for number, line in _lines("only_if", written.only_if)),
    )


def unmet(mapping: Rules, given: Given) -> str:
    """Return the first condition that does not hold; empty if all do."""
    return next((one.text for one in mapping.only_if if not one.holds(given)), "")


def take(mapping: Rules, given: Given) -> Taken:
    """Take everything from a delivery. Raises DeliveryError for what is missing; a tag may be."""
    tags = (text.of(given) for _, text in mapping.tags)
    return Taken(
        payload=_payload_of(mapping, given),
        id=_wanted("id", mapping.id, given),
        type=_wanted("type", mapping.type, given),
        dedup=_wanted("dedup key", mapping.dedup, given),
        tags=tuple(dict.fromkeys(tag for tag in tags if isinstance(tag, str) and tag)),
    )


def _wanted(what: str, text: Text | None, given: Given) -> str | None:
    if text is None:
        return None
    found = text.of(given)
    if not isinstance(found, str):
        detail = (
            f"The {what} cannot be taken from this delivery: there is no text or whole number at its source."
        )
        raise DeliveryError(422, "missing_value", detail, field=what.replace(" ", "_"))
    return found


def _payload_of(mapping: Rules, given: Given) -> Any:
    if isinstance(mapping.payload, tuple):
        found = {name: source.of(given) for name, source in mapping.payload}
        # A field that is missing may be optional: the schema of the workflow decides.
        return {name: value for name, value in found.items() if value is not MISSING}
    value = mapping.payload.of(given)
    if value is MISSING:
        raise DeliveryError(
            422, "missing_value", "There is nothing at the source of the payload.", field="payload"
        )
    return value


def _text(field: str, text: str) -> Text | None:
    return _required(field, text, 0) if text.strip() else None


def _required(field: str, text: str, line: int) -> Text:
    try:
        return sources.joined(text)
    except SourceError as error:
        raise MappingError(field, str(error), line) from None


def _payload(text: str) -> Source | tuple[tuple[str, Source], ...]:
    """Read one source for the whole, or lines of `name: source` for the fields of an object."""
    lines = list(_lines("payload", text))
    if not lines:
        return sources.Pointer(())
    if len(lines) == 1 and (lines[0][1][0] in "/=" or lines[0][1] == "body"):
        return _source("payload", lines[0][1], 0)
    found: dict[str, Source] = {}
    for number, line in lines:
        name, colon, text = line.partition(": ")
        if not colon or not name.strip():
            raise MappingError("payload", "Write `name: source`, such as `order_id: /data/id`.", number)
        if name.strip() in found:
            raise MappingError("payload", f"{name.strip()} stands here twice.", number)
        found[name.strip()] = _source("payload", text, number)
    return tuple(found.items())


def _condition(line: str, number: int) -> Condition:
    text, equals, values = line.partition(" = ")
    if not equals:
        raise MappingError("only_if", "Write `source = value`, such as `/action = opened, closed`.", number)
    return Condition(line, _source("only_if", text, number), _values(values, number))


def _values(text: str, number: int) -> tuple[str, ...]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > MOST_VALUES:
        raise MappingError("only_if", f"A condition has {MOST_VALUES} values at most.", number)
    try:
        return tuple(_canonical(sources.constant_of(part)) for part in parts)
    except SourceError as error:
        raise MappingError("only_if", str(error), number) from None


def _source(field: str, text: str, number: int) -> Source:
    try:
        return sources.source_of(text)
    except SourceError as error:
        raise MappingError(field, str(error), number) from None


def _lines(field: str, text: str) -> Iterator[tuple[int, str]]:
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        raise MappingError(field, f"It may have {MOST_LINES} lines at most.")
    return ((number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip())


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
