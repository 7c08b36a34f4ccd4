"""PostgreSQL's wire protocol, as far as telling statements apart needs it.

A client's messages are cut into requests: what one ReadyForQuery of the server answers. That is a Query, or all up to
a Sync: the parsing of a statement alone, where it is prepared, or its execution.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.steer import sql as public
from engine.worker.database import claim_sql, cluster_sql, flush_sql, history_sql
from engine.worker.database import sql as worker

QUERY, PARSE, BIND, SYNC, TERMINATE = b"Q", b"P", b"B", b"S", b"X"
READY = b"Z"


@dataclass
class Request:
    """One round trip: its bytes, and the statement that it parses or runs."""

    application: str
    data: bytes = b""
    statement: str = ""
    is_run: bool = False

    @property
    def name(self) -> str:
        """Name the statement by its constant in the engine, if it is one; `parse` if it is not run yet."""
        name = name_of(self.statement)
        return name if self.is_run else f"parse {name}"


@dataclass
class Messages:
    """Cuts a stream into messages of (type, all bytes)."""

    rest: bytes = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        self.rest += data
        while len(self.rest) >= 5:
            end = 1 + int.from_bytes(self.rest[1:5])
            if len(self.rest) < end:
                return
            message, self.rest = self.rest[:end], self.rest[end:]
            yield message[:1], message


@dataclass
class Requests:
    """Cuts what a client sends into requests."""

    application: str
    _messages: Messages = field(default_factory=Messages)
    _prepared: dict[bytes, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._next = Request(self.application)

    def feed(self, data: bytes) -> Iterator[Request]:
        for kind, message in self._messages.feed(data):
            request = self._next
            request.data += message
            if kind == QUERY:
                request.statement, request.is_run = message[5:-1].decode(), True
            elif kind == PARSE:
                name, text, _ = message[5:].split(b"\0", 2)
                request.statement = self._prepared[name] = text.decode()
            elif kind == BIND:
                name = message[5:].split(b"\0", 2)[1]
                request.statement, request.is_run = self._prepared.get(name, "?"), True
            if kind in (QUERY, SYNC, TERMINATE):
                self._next = Request(self.application)
                yield request


def application_of(startup: bytes) -> str:
    """Return the application_name in a StartupMessage."""
    words = startup[8:].split(b"\0")
    told = dict(zip(words[::2], words[1::2], strict=False))
    return told.get(b"application_name", b"").decode()


def name_of(statement: str) -> str:
    known = _known()
    text = " ".join(statement.split())
    for name, pattern in known.items():
        if pattern.fullmatch(text):
            return "FLUSH" if name == "FLUSH_STEPS" else name
    return " ".join(re.findall(r"[\w.]+", text)[:3])


def _known() -> dict[str, re.Pattern[str]]:
    """Every statement that the engine has as a constant, as the server gets it: with $1 for a parameter."""
    if not _patterns:
        for module in (worker, flush_sql, history_sql, claim_sql, cluster_sql, public):
            for name, text in vars(module).items():
                if name.isupper() and isinstance(text, str) and len(text.split()) > 1:
                    escaped = re.escape(" ".join(text.split()).replace("%%", "%"))
                    _patterns[name] = re.compile(re.sub(r"%(\\\(\w+\\\))?[sb]", r"\\$\\d+", escaped))
    return _patterns


_patterns: dict[str, re.Pattern[str]] = {}
