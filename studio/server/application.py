"""The Studio's sockets and limits, around the ASGI application of a site."""

from __future__ import annotations

from typing import Any

from django.core.handlers.asgi import ASGIHandler

from engine.configuration import setting
from studio.access.anonymous_queue import AnonymousQueue
from studio.access.refusals import Application, Receive, Scope, Send
from studio.live.consumer import StudioConsumer
from studio.server import route_limits
from studio.server.announce import announce_web
from studio.server.headers import HeaderLimits, OriginCheck
from studio.server.probes import Probes
from studio.server.request_limits import Limits, limit_daphne


def with_studio(application: Any) -> Any:
    """Return an application that serves the Studio's sockets, and everything else with the given one.

    The Studio's limits apply to its own pages and sockets only. Call it once in a process, after
    `get_asgi_application()`. An application that it has returned is returned as it is.
    """
    if isinstance(application, Probes):  # its queue would wait for itself
        return application
    limits = Limits(
        setting("MAX_BODY_BYTES"),
        setting("BODY_TIMEOUT_SECONDS"),
        route_limits.may_be_large,
        route_limits.is_from_known,
        applies_to=route_limits.is_studio_request,
        strangers_bytes=route_limits.strangers_bytes,
    )
    announce_web()
    limit_daphne(limits)
    sockets: Any = StudioConsumer.as_asgi()
    site = _Site(application, OriginCheck(sockets))
    is_ours = route_limits.is_studio_request
    return Probes(AnonymousQueue(HeaderLimits(site, is_ours), is_ours, route_limits.is_delivery))


class _Site:
    """Pass the Studio's sockets to the Studio, and everything else to the site."""

    def __init__(self, site: Any, sockets: Application) -> None:
        self.site = site
        self.sockets = sockets
        self.has_sockets = not isinstance(site, ASGIHandler)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.site(scope, receive, send)
        elif route_limits.is_studio_socket(scope):
            await self.sockets(scope, receive, send)
        elif self.has_sockets:
            await self.site(scope, receive, send)
        else:
            # Django has none: it would log a traceback.
            await receive()
            await send({"type": "websocket.close"})
