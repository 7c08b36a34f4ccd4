"""A person who is signed in and has a token, asking a daphne over a connection that is kept open."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection

from tests.bench.pages.asked import INSTANCES, VALUES, Asked
from tests.bench.web import PERSON

NAME = "bench-visitor"


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer: its status, its size as sent, and how long the last byte of it took, in ms."""

    status: int
    size: int
    ms: float


class Visitor:
    def __init__(self, connection: HTTPConnection, token: str, session: str) -> None:
        from django.conf import settings

        self._connection = connection
        self._as_program = {"Authorization": f"Bearer {token}"}
        # As browsers do: compressing is part of the time.
        self._as_person = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}", "Accept-Encoding": "gzip"}

    def get(self, path: str, *, by_token: bool) -> Answered:
        began = time.perf_counter()
        self._connection.request("GET", path, headers=self._as_program if by_token else self._as_person)
        answer = self._connection.getresponse()
        size = len(answer.read())
        return Answered(answer.status, size, (time.perf_counter() - began) * 1000)


@contextmanager
def visiting(port: int, token: str) -> Iterator[Visitor]:
    """Sign in as a superuser; afterwards no account is left, so that a Studio makes its first one."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
    from django.contrib.sessions.backends.db import SessionStore

    people = get_user_model().objects
    person, _ = people.get_or_create(username=NAME, defaults={"is_superuser": True})
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        yield Visitor(connection, token, session.session_key or "")
    finally:
        connection.close()
        session.delete()
        people.filter(username__in=(NAME, PERSON)).delete()


def addressed(asked: tuple[Asked, ...]) -> dict[Asked, str]:
    """Return the address of each request on this database; those for which nothing fits are left out."""
    known = _known()
    found = {}
    for one in asked:
        try:
            path, query = one.path.format(**known), one.query.format(**known)
        except KeyError:
            continue
        found[one] = f"{path}?{query}" if query else path
    return found


def _known() -> dict[str, str]:
    from django.db import connection

    found = {}
    with connection.cursor() as cursor:
        for name, condition in INSTANCES.items():
            cursor.execute(
                "SELECT workflow || '/instances/' || id FROM engine_instance"
                f" WHERE {condition} ORDER BY key DESC LIMIT 1"
            )
            found[name] = cursor.fetchone()
        for name, query in VALUES.items():
            cursor.execute(query)
            found[name] = cursor.fetchone()
    return {name: str(row[0]) for name, row in found.items() if row is not None}
