"""Events and answers, as code declares and receives them. Their rows are `engine.models.Event`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar, cast, overload

from engine.declare.params import codec_of, encode_valid, validate
from engine.values.errors import DeclarationError, InvalidNameError
from engine.values.identity import check_event_type, stable_hash
from engine.values.serialization import JSON, encode
from engine.values.serialization.envelope import STORED

T = TypeVar("T")

declared_events: dict[str, Event[Any]] = {}


class Event(Generic[T]):
    """Declare an event's type and the type of its payload: `Event("order-approved", Approval)`.

    The payload is then validated when the event is sent, by any sender, and the wait returns it as that type.
    Declaring it again with the same payload type gives the same event; another payload type raises DeclarationError.
    """

    @overload
    def __init__(self, name: str, payload: type[T]) -> None: ...
    @overload
    def __init__(self: Event[Any], name: str, payload: Any = Any) -> None: ...
    def __init__(self, name: str, payload: Any = Any) -> None:
        what = f'Event "{name}"'
        try:
            self.name = check_event_type(name)
        except InvalidNameError as problem:
            raise DeclarationError(what, "name", str(problem)) from None
        self.codec = codec_of(payload, what=what, field="payload")
        earlier = declared_events.setdefault(self.name, self)
        if earlier.codec.annotation != payload:
            rule = f"It is already declared with the payload type {earlier.codec.annotation!r}."
            raise DeclarationError(what, "payload", f"{rule} Rename one of them, or share the type.")

    def __repr__(self) -> str:
        return f"Event({self.name!r}, {self.codec.annotation!r})"

    def validate(self, payload: object) -> T:
        """Return the payload as its declared type. Raises InvalidParamsError."""
        return cast(T, validate(self.codec, payload, what="payload"))

    def encode(self, payload: object) -> str:
        """Validate the payload and return the JSON text to store."""
        return encode_valid(self.codec, payload, what="payload")

    def decode(self, payload: JSON) -> T:
        """Return a stored payload, which is JSON, as its declared type."""
        text = encode(payload, what="payload", envelopes=STORED)
        return cast(T, self.codec.decode(text, "payload"))

    def schema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of the payload, or None if any JSON is accepted."""
        return self.codec.schema()


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The result of `step.request`."""

    value: T
    """The answer, as the type that was asked for."""
    answered_by: str
    """The user name, or the name of the program, that answered."""
    answered_at: datetime
    """When, as an aware datetime."""
    comment: str
    """The comment given with the answer, or empty."""

    def __hash__(self) -> int:
        return stable_hash(self.answered_by, self.answered_at.isoformat())


@dataclass(frozen=True, slots=True)
class ReceivedEvent(Generic[T]):
    """The result of `step.wait_for_event`."""

    type: str
    """The type of the event."""
    payload: T
    """The payload: as the type of a declared Event, else as JSON."""
    sent_by: str
    """The user or program that sent it, or empty."""
    received_at: datetime
    """When it was sent, as an aware datetime."""

    def __hash__(self) -> int:
        return stable_hash(self.type, self.sent_by, self.received_at.isoformat())
