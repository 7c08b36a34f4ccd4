"""Operators who are signed in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

NAME = "bench-tab-{}"


@contextmanager
def signed_in(count: int) -> Iterator[list[str]]:
    """Sign in so many; return the keys of their sessions. Afterwards neither they nor their sessions are left."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
    from django.contrib.auth.models import Group
    from django.contrib.sessions.backends.db import SessionStore

    users = get_user_model().objects
    sessions = []
    for number in range(count):
        person, _ = users.get_or_create(username=NAME.format(number))
        person.groups.add(Group.objects.get(name="reprise-operator"))
        session = SessionStore()
        session[SESSION_KEY] = str(person.pk)
        session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
        session[HASH_SESSION_KEY] = person.get_session_auth_hash()
        session.save()
        sessions.append(session)
    try:
        yield [session.session_key or "" for session in sessions]
    finally:
        for session in sessions:
            session.delete()
        users.filter(username__startswith=NAME.format("")).delete()
