"""Server-sent events: how their text is read, and how a stream goes on after its connection was lost."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from studio.client.call import query_of
from studio.client.errors import UnavailableError, UnexpectedAnswerError
from studio.client.operations.making import address_of
from studio.client.sending import (
    AGAIN,
    document_of,
    error_of,
    is_about_tls,
    is_problem,
    retry_after,
    unreachable,
)
from studio.client.settings import API, Settings
from studio.client.times import read_times

END = "end"  # the last event of a stream
REFUSED = "error"  # the reader may not read on; a problem
QUIET = 60.0  # seconds without a byte, after which a connection counts as lost; heartbeats come every 15 s
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One thing that happened. `id` is the cursor behind it, `type` what it is, `data` the document."""

    id: str
    type: str
    data: Any


class Parser:
    """Reads the format text/event-stream from pieces of any size."""

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id  # of the last event that came whole
        self.retry: float | None = None
        self._rest = b""
        self._id, self._type, self._data = last_id, "", list[str]()

    def feed(self, piece: bytes) -> Iterator[StreamEvent]:
        """Yield the events that end in this piece."""
        *lines, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            yield from self._line(line.decode(errors="replace"))

    def _line(self, line: str) -> Iterator[StreamEvent]:
        if not line:
            self.last_id = self._id
            if self._data:
                yield StreamEvent(self.last_id, self._type or "message", _value("\n".join(self._data)))
            self._type, self._data = "", []
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id" and "\0" not in value:
            self._id = value
        elif name == "event":
            self._type = value
        elif name == "data":
            self._data.append(value)
        elif name == "retry" and value.isdigit():
            self.retry = int(value) / 1000


class Subscription:
    """A stream of an instance, over as many connections as it takes. Does no input or output."""

    def __init__(
        self, settings: Settings, workflow: str, id: str, cursor: str | None, types: Sequence[str] | None
    ) -> None:
        self._settings, self._path, self._cursor = settings, address_of(workflow, id, "subscribe"), cursor
        self._types = ",".join(types) if types else None
        self._parser, self._lost, self.is_over = Parser(), 0, False
        self._is_open = False
        self._wanted = 0.0  # seconds, by an answer that refused

    def request(self) -> dict[str, Any]:
        """Return the arguments of the next request, which goes on behind the last event."""
        after = self._parser.last_id or self._cursor
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        return {
            "method": "GET",
            "url": f"{self._settings.base_url}{API}{self._path}",
            "params": list(query_of(types=self._types)) or None,
            "headers": headers,
            "timeout": httpx2.Timeout(QUIET, connect=self._settings.connect_timeout),
        }

    def begin(self, response: httpx2.Response) -> None:
        """Begin with an answer: the end of the last connection may have cut an event.

        Raises ApiError for an answer that is no stream, unless the Studio may soon have one.
        """
        if response.status_code == 204:  # there is nothing behind the cursor any more
            self.is_over = True
        elif not is_stream(response):
            if response.status_code not in AGAIN or self._lost >= self._settings.retries:
                document_of(response)
                raise UnexpectedAnswerError("The server answered with JSON, not with a stream.")
            self._wanted = retry_after(response.headers) or 0.0
        self._is_open = is_stream(response)
        retry, self._parser = self._parser.retry, Parser(self._parser.last_id)
        self._parser.retry = retry

    def feed(self, piece: bytes) -> Iterator[StreamEvent]:
        """Yield the events that end in this piece, up to the last one of the stream."""
        for event in self._parser.feed(piece) if self._is_open else ():
            self._lost = 0
            if event.type == REFUSED and is_problem(event.data):
                raise error_of(event.data, int(event.data.get("status", 0)))
            yield event
            if event.type == END:
                self.is_over = True
                return

    def pause_after(self, error: httpx2.RequestError | None) -> float:
        """Return the seconds until the next connection. Raises UnavailableError after too many without an event."""
        self._lost += 1
        if self._lost > self._settings.retries or (error is not None and is_about_tls(error)):
            if error is None:
                raise UnavailableError(f"{self._settings.base_url} ends the stream again and again.")
            raise unreachable(self._settings, error) from error
        longest: float = min(FIRST_PAUSE * 2 ** (self._lost - 1), LONGEST_PAUSE)
        wanted, self._wanted = min(self._wanted, self._settings.max_wait), 0.0
        return max(wanted, self._parser.retry or 0.0, longest * (0.5 + random.random() / 2))  # noqa: S311  spreads clients


def is_stream(response: httpx2.Response) -> bool:
    kind: str = response.headers.get("Content-Type", "")
    return response.status_code == 200 and kind.startswith("text/event-stream")


def _value(text: str) -> Any:
    try:
        return read_times(json.loads(text))
    except ValueError:
        return text
