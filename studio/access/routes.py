"""Where the site's addresses are for a visitor: the prefix of the server, and the language of the routes.

Django learns both from a request before it asks for a view. What runs before Django or without a request asks here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.conf.urls.i18n import is_language_prefix_patterns_used
from django.core.handlers.asgi import get_script_prefix as prefix_of
from django.http import HttpRequest
from django.middleware.locale import LocaleMiddleware
from django.urls import ResolverMatch, get_script_prefix, resolve, set_script_prefix
from django.utils import translation
from django.utils.module_loading import import_string

from studio.access.cookies import cookies_of


@dataclass(frozen=True, slots=True)
class Routes:
    """How pages write addresses for a visitor."""

    prefix: str
    language: str

    @contextmanager
    def used(self) -> Iterator[None]:
        """Resolve and write addresses as for this visitor."""
        before = get_script_prefix()
        set_script_prefix(self.prefix)
        try:
            with translation.override(self.language):
                yield
        finally:
            set_script_prefix(before)


def routes_of(scope: Any) -> Routes:
    """Return the routes of a request or a handshake."""
    return Routes(prefix_of(scope), _language_of(scope))


def path_of(scope: Any) -> str:
    """Return the path below the server's prefix, as Django does. Clients may set the prefix: daphne reads a header."""
    return str(scope["path"]).removeprefix(prefix_of(scope))


def match_of(path: str) -> ResolverMatch:
    """Resolve the path of an address, which begins with the server's prefix. Raises Resolver404."""
    return resolve(path.removeprefix(get_script_prefix().rstrip("/")))


def _language_of(scope: Any) -> str:
    """Return the language that Django's LocaleMiddleware would activate."""
    in_path, is_default_in_path = is_language_prefix_patterns_used(settings.ROOT_URLCONF)
    named = translation.get_language_from_path(path_of(scope)) if in_path else None
    if named:
        return named
    if (in_path and not is_default_in_path) or not _asks_browsers(tuple(settings.MIDDLEWARE)):
        return settings.LANGUAGE_CODE
    request = HttpRequest()
    request.COOKIES = cookies_of(scope["headers"])
    accepted = [value.decode("latin1") for name, value in scope["headers"] if name == b"accept-language"]
    request.META["HTTP_ACCEPT_LANGUAGE"] = ",".join(accepted)
    return translation.get_language_from_request(request)


@lru_cache(maxsize=8)
def _asks_browsers(middleware: tuple[str, ...]) -> bool:
    """Tell whether pages are in the language of the browser."""
    loaded = (import_string(name) for name in middleware)
    return any(isinstance(one, type) and issubclass(one, LocaleMiddleware) for one in loaded)
