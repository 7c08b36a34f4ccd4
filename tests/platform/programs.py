"""Programs with tokens, which call the API of a real server and may send what no client does."""

from __future__ import annotations

import json
import re
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.live import LiveStack
from tests.platform.visitor import head, status_of, talk

JSON = "application/json"
API = "/api/v1"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)

ISSUE = """
from django.contrib.auth.models import Group, User
from studio.access import tokens
from studio.access.permissions import Verb
admin = User.objects.get(username="admin")
owner = None
if {role!r}:
    owner = User.objects.create_user({name!r}, password={name!r})
    owner.groups.add(Group.objects.get(name="reprise-" + {role!r}))
verbs = [Verb(one) for one in {verbs!r}]
print(tokens.issue({name!r}, by=owner or admin, owner=owner, verbs=verbs, workflows={workflows!r}).text)
"""


@dataclass(frozen=True)
class Answer:
    """An answer, with the names of its headers in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @classmethod
    def of(cls, raw: bytes) -> Answer:
        above, _, body = raw.partition(b"\r\n\r\n")
        lines = [line.partition(b":") for line in above.split(b"\r\n")[1:]]
        headers = {name.decode("latin1").lower(): value.decode("latin1").strip() for name, _, value in lines}
        return cls(status_of(raw), headers, body)

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Program:
    """A client with a token."""

    stack: LiveStack
    token: str

    @property
    def authorization(self) -> bytes:
        return f"Authorization: Bearer {self.token}".encode()

    def ask(self, method: str, path: str, body: Any = None, *headers: bytes) -> Answer:
        """Send a request on a connection of its own."""
        text = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        about = [f"Content-Type: {JSON}".encode(), b"Content-Length: %d" % len(text)] if text else []
        first = f"{method} {API}{path} HTTP/1.1"
        return Answer.of(
            talk(self.stack, head(self.stack, first, self.authorization, *about, *headers) + text)
        )


def program(
    stack: LiveStack,
    *,
    role: str = "",
    verbs: Sequence[str] = ("view", "operate"),
    workflows: Sequence[str] = ("*",),
) -> Program:
    """Make a token: of a new person with a role, or without one of a team."""
    name = f"p{secrets.token_hex(4)}"
    code = ISSUE.format(role=role, name=name, verbs=[*verbs], workflows=[*workflows])
    return Program(stack, stack.django(code).split()[-1])


def talk_on(stack: LiveStack, request: bytes, answers: int) -> list[Answer]:
    """Send requests at once on one connection, and read so many answers."""
    with socket.create_connection(("127.0.0.1", stack.port), timeout=60) as connection:
        connection.sendall(request)
        found: list[Answer] = []
        raw = b""
        while len(found) < answers:
            above, end, rest = raw.partition(b"\r\n\r\n")
            length = _LENGTH.search(above)
            if end and length is not None and len(rest) >= int(length[1]):
                size = int(length[1])
                found.append(Answer.of(above + end + rest[:size]))
                raw = rest[size:]
            elif chunk := connection.recv(65536):
                raw += chunk
            else:
                raise AssertionError(f"Only {len(found)} answers came, and {raw!r}")
        return found
