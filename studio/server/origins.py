"""Which pages may open a socket."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from studio.access.refusals import Application, Receive, Refusal, Scope, Send, refuse

PORTS = {"http": 80, "https": 443}


class FullOriginValidator:
    """Let a socket open only from an origin of the list, compared whole: scheme, host and port.

    Channels' own AllowedHostsOriginValidator compares hosts only: a page of another program on another port of the
    same machine would pass, and the browser sends it our cookies.
    """

    def __init__(self, application: Application, origins: Iterable[str]) -> None:
        listed = list(origins)
        if not listed or any("*" in origin or "://" not in origin for origin in listed):
            raise ImproperlyConfigured(f"Sockets need full origins, as https://studio.example, not {listed}.")
        self.application = application
        self.origins = {text for origin in listed for text in written(origin)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = [value.decode("latin1") for name, value in scope["headers"] if name == b"origin"]
        # Compared as text: browsers write an origin in one way only.
        if len(given) == 1 and given[0].lower() in self.origins:
            await self.application(scope, receive, send)
        else:
            await refuse(
                scope, receive, send, Refusal(403, "A page from another origin cannot open a socket.")
            )


def written(origin: str) -> list[str]:
    """Return the spellings of an origin: in lower case, with and without the port if it is the default one."""
    parts = urlsplit(origin.lower())
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = parts.port or PORTS.get(parts.scheme)
    whole = f"{parts.scheme}://{host}:{port}"
    return [whole, f"{parts.scheme}://{host}"] if port == PORTS.get(parts.scheme) else [whole]
