"""Answer `/healthz` and `/readyz` before anything that may refuse or delay a request.

A kubelet asks by the address of a pod, without TLS: the Host header names no allowed host, and a redirect to https
would lead nowhere. And a probe that waits in the queue of anonymous requests would fail during a flood, and make it
worse: the process would be restarted.
"""

from __future__ import annotations

import asyncio

from engine.configuration import setting
from engine.status.health import Health
from studio.access.addresses import is_listed_scope
from studio.access.refusals import Application, Receive, Scope, Send
from studio.health import answers, views
from studio.health.answers import HEADERS, ProbeAnswer
from studio.health.readiness import TIMEOUT, TOO_SLOW, Question, details, readiness
from studio.server import route_limits

METHODS = ("GET", "HEAD")
ENDINGS = ("/healthz", "/readyz")


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
    is_listed = is_listed_scope(scope, setting("HEALTH_ADDRESSES"))
    return answers.ready(found, await _answer_to(details) if is_listed and found.is_ready else None)


async def _answer_to(question: Question) -> Health:
    try:
        asked = asyncio.shield(asyncio.wrap_future(question.ask()))  # others wait for it, too
        return await asyncio.wait_for(asked, TIMEOUT.total_seconds())
    except TimeoutError:
        return TOO_SLOW


async def _send(scope: Scope, send: Send, answer: ProbeAnswer) -> None:
    headers = {**HEADERS, "Content-Length": str(len(answer.body))}
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": raw})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})
