"""The project's own authentication for the API, as django-ninja takes it: the setting API_AUTH.

It must return a Django user, whose permissions then decide, or something false. It sees no cookies: a page of another
site could send them.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils.module_loading import import_string
from ninja.errors import AuthenticationError
from ninja.security import APIKeyCookie, APIKeyHeader, SessionAuth

from engine.configuration import setting
from studio.access import credentials

log = logging.getLogger("studio")

Ask = Callable[[HttpRequest], Any]


class UnusableError(Exception):
    """A path of API_AUTH leads to nothing that can be used; the message says why."""


def holder_of(request: HttpRequest) -> Any:
    """Return the user who sends a request; None if the project's authentication does not know the sender.

    Raises what it raises, except for ninja's AuthenticationError.
    """
    paths = tuple(setting("API_AUTH"))
    if not paths:
        return None
    _hide_cookies(request)
    for path in paths:
        try:
            found = loaded(path)(request)
            if inspect.isawaitable(found):
                found = async_to_sync(_awaited)(found)
        except AuthenticationError:
            continue
        if found and _is_user(found, path):
            return found
    return None


def is_configured() -> bool:
    """Tell whether the project has an authentication of its own."""
    return bool(setting("API_AUTH"))


@lru_cache(maxsize=32)
def loaded(path: str) -> Ask:
    """Return what a path of API_AUTH leads to: a function, an instance, or an instance of a class.

    Raises UnusableError.
    """
    try:
        found: Any = import_string(path)
        found = found() if isinstance(found, type) else found
    except Exception as error:
        raise UnusableError(f"{type(error).__name__}: {error}") from error
    if not callable(found):
        raise UnusableError(f"It is a {type(found).__name__}, which cannot be called with a request.")
    if isinstance(found, APIKeyCookie | SessionAuth):
        raise UnusableError("It reads a cookie, which a page of another site could send.")
    if isinstance(found, APIKeyHeader):
        credentials.HEADERS.add(found.param_name.lower())
    return found


def unusable(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the paths that cannot be used, and why."""
    for path in paths:
        try:
            loaded(path)
        except UnusableError as error:
            yield path, str(error)


async def _awaited(found: Awaitable[Any]) -> Any:
    return await found


def _hide_cookies(request: HttpRequest) -> None:
    """Take away the cookies of a request, and what the site's middleware may have learnt from them."""
    if not request.META.get("HTTP_COOKIE"):
        return
    request.COOKIES = {}
    request.META = {name: value for name, value in request.META.items() if name != "HTTP_COOKIE"}
    request.__dict__.pop("headers", None)  # cached
    request.user = AnonymousUser()
    if hasattr(request, "session"):
        request.session = type(request.session)()


def _is_user(found: Any, path: str) -> bool:
    """Tell whether it is a user who may sign in. Anything else cannot have permissions."""
    if not hasattr(found, "has_perm") or not hasattr(found, "get_username"):
        _warn(path, type(found).__name__)
        return False
    # Without a key, keys and limits of one user would be those of another.
    return bool(found.is_authenticated and found.is_active and found.pk is not None)


@lru_cache(maxsize=32)
def _warn(path: str, kind: str) -> None:
    log.warning("%s of API_AUTH returned a %s. It must return a Django user, or None.", path, kind)
