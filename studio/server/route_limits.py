"""Decide which requests the Studio's limits apply to: in a larger site, only those for the Studio's own pages."""

from __future__ import annotations

import logging
from functools import lru_cache
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.db import InterfaceError, OperationalError
from django.urls import Resolver404, resolve

from studio.access import tokens
from studio.access.anonymous_queue import is_known, take_turn
from studio.access.cookies import broken_cookie, session_key_of
from studio.access.credentials import token_of
from studio.access.people import in_thread, person_of_session
from studio.access.refusals import Scope
from studio.access.routes import path_of, routes_of
from studio.api import project_auth
from studio.frame.guard import Rule, rule_of
from studio.live.reconcile import socket_address
from studio.server.limited_channel import SMALL

log = logging.getLogger("studio.web")

_VIEW = "reprise.view"  # in a scope: the view at its path


def is_whole_site() -> bool:
    """Tell whether the Studio is the whole site."""
    return bool(settings.ROOT_URLCONF == "studio.site")


def is_studio_request(scope: Scope) -> bool:
    """Tell whether a request is for a page of the Studio, or for its socket."""
    return is_whole_site() or rule_for(scope) is not None


def is_studio_socket(scope: Scope) -> bool:
    """Tell whether a handshake is for the Studio's socket."""
    found = view_of(scope)
    return found is socket_address


async def may_be_large(scope: Scope) -> bool:
    """Tell whether a body may exceed 64 KiB: only if the view takes a payload and the sender is signed in.

    Programs sign in with a token. Raises QueueFullError if too many anonymous requests are waiting.
    """
    rule = rule_for(scope)
    if rule is None:
        return False
    if rule.is_by_token:
        is_named = bool(token_of(scope["headers"])) or project_auth.is_configured()
        return is_named and await take_turn(scope, _is_program)
    # Without a session there is nothing to ask the database, so nothing to wait for. PostgreSQL refuses a broken key.
    if not rule.takes_payload or not session_key_of(scope) or broken_cookie(scope["headers"]):
        return False
    return await take_turn(scope, _is_signed_in)


def strangers_bytes(scope: Scope) -> int:
    """Return how large a body may be whose sender is not signed in."""
    rule = rule_for(scope)
    return SMALL if rule is None else rule.strangers_bytes


def is_delivery(scope: Scope) -> bool:
    """Tell whether the sender of a request signs it instead of signing in."""
    rule = rule_for(scope)
    return rule is not None and rule.is_signed


def is_from_known(scope: Scope) -> bool:
    """Tell whether the session or the token of a request has been accepted lately."""
    return is_known(scope)


def rule_for(scope: Scope) -> Rule | None:
    """Return the rule of the view that Django would call, or None if it is not a view of the Studio."""
    return rule_of(view_of(scope))


def view_of(scope: Scope) -> object:
    """Return the view at the path of a request, or None."""
    if "path" not in scope:  # not a request: lifespan
        return None
    # Several limits ask. A site may pass the scope on with another path.
    asked = scope["path"], scope.get("root_path", "")
    known = scope.get(_VIEW)
    if known is None or known[0] != asked:
        known = scope[_VIEW] = (asked, _resolve(scope))
    return known[1]


def _resolve(scope: Scope) -> object:
    try:
        with routes_of(scope).used():
            return resolve(path_of(scope)).func
    except Resolver404:
        return None
    except Exception as error:  # noqa: BLE001  A converter of the site: Django resolves it again, and answers.
        _log_once(type(error).__name__, str(error))
        return None


@lru_cache(maxsize=64)
def _log_once(kind: str, text: str) -> None:
    log.warning(
        "The Studio's limits do not apply to an address: a route of the site raised %s: %s. If it may match the "
        "Studio's addresses, put the Studio's line before it.",
        kind,
        text,
    )


async def _is_program(scope: Scope) -> bool:
    try:
        return await in_thread(_program_of, scope) is not None
    except (OperationalError, InterfaceError):
        return True  # the same


def _program_of(scope: Scope) -> Any:
    """Return who sends a request to the API, of which only the headers have arrived."""
    found = tokens.find(token_of(scope["headers"]))
    if found is not None or not project_auth.is_configured():
        return found
    try:
        # daphne has not made the whole scope yet.
        request = ASGIRequest({"method": "POST", "query_string": b"", **scope}, BytesIO())
        return project_auth.holder_of(request)
    except (OperationalError, InterfaceError):
        raise
    except Exception:  # noqa: BLE001  The project's code: the door asks it again, logs the error, and answers.
        return None


async def _is_signed_in(scope: Scope) -> bool:
    try:
        return await in_thread(person_of_session, session_key_of(scope)) is not None
    except (OperationalError, InterfaceError):
        return True  # Django's own answer says that the database is away
