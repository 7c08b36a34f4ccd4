"""Answer `/healthz` and `/readyz` before anything that may refuse or delay a request.

A kubelet asks by the address of a pod, without TLS: the Host header names no allowed host, and a redirect to https
would lead nowhere. And a probe that waits in the queue of anonymous requests would fail during a flood, and make it
worse: the process would be restarted. Only who sends a token of which nothing is known waits there, and not for long:
nobody can try out tokens faster here than at the API.
"""

from __future__ import annotations

import asyncio
from io import BytesIO

from django.core.handlers.asgi import ASGIRequest

from engine.configuration import setting
from engine.status.health import Health
from studio.access.addresses import is_listed_scope
from studio.access.anonymous_queue import QueueFullError, take_turn
from studio.access.people import in_thread
from studio.access.refusals import Application, Receive, Scope, Send
from studio.health import answers, views
from studio.health.answers import ProbeAnswer
from studio.health.audience import EVERYBODY, LISTED, Audience, audience_of, names_sender
from studio.health.readiness import TIMEOUT, TOO_SLOW, Question, details, readiness
from studio.server import route_limits

METHODS = ("GET", "HEAD")
ENDINGS = ("/healthz", "/readyz")
TOKEN_TIMEOUT = TIMEOUT


class Probes:
    """Answer the probes; pass all other requests on."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        view = _view(scope)
        if view is views.healthz:
            await _send(scope, send, answers.alive())
        elif view is views.readyz:
            await _send(scope, send, await _ready(scope))
        else:
            await self.application(scope, receive, send)


def _view(scope: Scope) -> object:
    """Return the view at the path, if it is a probe's: the Studio may be below any prefix."""
    if scope["type"] != "http" or scope["method"] not in METHODS or not scope["path"].endswith(ENDINGS):
        return None
    return route_limits.view_of(scope)


async def _ready(scope: Scope) -> ProbeAnswer:
    found = await _answer_to(readiness)
    if not found.is_ready:
        return answers.unready(found)
    audience = await _audience_of(scope)
    return answers.ready(audience, await _answer_to(details) if audience.sees_details else None)


async def _audience_of(scope: Scope) -> Audience:
    if is_listed_scope(scope, setting("HEALTH_ADDRESSES")):
        return LISTED
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if not names_sender(b",".join(given).decode("latin1")):
        return EVERYBODY
    try:
        return await asyncio.wait_for(take_turn(scope, _asked), TOKEN_TIMEOUT.total_seconds())
    except (QueueFullError, TimeoutError):
        return EVERYBODY


async def _asked(scope: Scope) -> Audience:
    return await in_thread(_read_audience, scope)


def _read_audience(scope: Scope) -> Audience:
    # Django fails on some content types, and a probe has none.
    headers = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
    return audience_of(ASGIRequest({"query_string": b"", **scope, "headers": headers}, BytesIO()))


async def _answer_to(question: Question) -> Health:
    try:
        asked = asyncio.shield(asyncio.wrap_future(question.ask()))  # others wait for it, too
        return await asyncio.wait_for(asked, TIMEOUT.total_seconds())
    except TimeoutError:
        return TOO_SLOW


async def _send(scope: Scope, send: Send, answer: ProbeAnswer) -> None:
    headers = {**answer.headers, "Content-Length": str(len(answer.body))}
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": raw})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})
