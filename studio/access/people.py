"""Find out who is signed in, for sockets and for requests that Django has not seen yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import close_old_connections
from django.utils.module_loading import import_string

from studio.access.permissions import Verb, allowed

P = ParamSpec("P")
T = TypeVar("T")

# Threads of their own: slow queries of sockets do not delay pages.
THREADS = 4
SHARED_FOR_S = 1.0
_asked: dict[str, tuple[float, asyncio.Future[Any]]] = {}
_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="studio-draw")


def person_of_session(key: str) -> Any:
    """Return the user of a session; None if nobody is signed in, or the user may not view anything.

    The session stays as it is.
    """
    store = import_string(f"{settings.SESSION_ENGINE}.SessionStore")
    session = _Copy(store(session_key=key).items())
    if "_auth_user_id" not in session:
        return None
    user = get_user(SimpleNamespace(session=session))  # type: ignore[arg-type]
    return user if allowed(user, Verb.VIEW, None) else None


class _Copy(dict[str, Any]):
    """A copy of a session for `get_user`.

    After a change of SECRET_KEY, `get_user` gives the session another key, which only a page can send to the browser.
    """

    def cycle_key(self) -> None:
        """Leave it to the next page."""

    def flush(self) -> None:
        """Leave it to the next page."""


async def person_now(key: str) -> Any:
    """Return the same, with at most one query a second for each session: all tabs of a person share the answer."""
    now = time.monotonic()
    asked_at, asked = _asked.get(key, (-SHARED_FOR_S, None))
    if asked is None or now - asked_at >= SHARED_FOR_S:
        asked = asyncio.ensure_future(in_thread(person_of_session, key))
        for old in [one for one, (at, _) in _asked.items() if now - at >= SHARED_FOR_S]:
            del _asked[old]
        _asked[key] = now, asked
    # A tab that closes must not cancel the query of the others.
    return await asyncio.shield(asked)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that queries the database in one of a few threads, and close its connection."""
    ask = sync_to_async(_with_connection, thread_sensitive=False, executor=_threads)
    return await ask(function, *args, **kwargs)


def _with_connection(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    close_old_connections()
    try:
        return function(*args, **kwargs)
    finally:
        close_old_connections()
