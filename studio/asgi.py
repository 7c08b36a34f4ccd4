"""The ASGI application: pages through Django, sockets through Channels, and limits in front of both."""

import os
from typing import Any

from django.core.asgi import get_asgi_application

from studio.environment.starting import plain_refusals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
pages = plain_refusals()(get_asgi_application)()

# These imports need Django to be set up.
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402
from django.urls import path, re_path  # noqa: E402

from studio.access.anonymous_queue import AnonymousQueue  # noqa: E402
from studio.live.consumer import StudioConsumer  # noqa: E402
from studio.server import route_limits  # noqa: E402
from studio.server.announce import announce_web  # noqa: E402
from studio.server.headers import FullOriginValidator, HeaderLimits  # noqa: E402
from studio.server.request_limits import Limits, limit_daphne  # noqa: E402


async def no_such_socket(scope: Any, receive: Any, send: Any) -> None:
    """Reject sockets at unknown addresses; otherwise the server would log a traceback."""
    await receive()
    await send({"type": "websocket.close"})


def socket_routes() -> list[Any]:
    # The stubs know views only, not applications.
    refused: Any = no_such_socket
    return [path("ws/studio/", StudioConsumer.as_asgi()), re_path("", refused)]


# A project that only includes the Studio may leave these two out.
max_body_bytes = getattr(settings, "REPRISE_MAX_BODY_BYTES", 4 * 1024 * 1024)
body_timeout = getattr(settings, "REPRISE_BODY_TIMEOUT_SECONDS", 30)

announce_web()
limit_daphne(Limits(max_body_bytes, body_timeout, route_limits.may_be_large, route_limits.is_from_known))
sockets = FullOriginValidator(URLRouter(socket_routes()), settings.REPRISE_ORIGINS)
application = ProtocolTypeRouter(
    {
        "http": AnonymousQueue(
            HeaderLimits(pages, route_limits.is_studio_request), route_limits.is_studio_request
        ),
        "websocket": AnonymousQueue(
            HeaderLimits(sockets, route_limits.is_studio_request), route_limits.is_studio_request
        ),
    }
)
