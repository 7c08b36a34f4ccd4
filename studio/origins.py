"""Which pages may open a socket."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import ParseResult

from channels.security.websocket import OriginValidator
from django.core.exceptions import ImproperlyConfigured


class FullOriginValidator(OriginValidator):
    """Let a socket open only from an origin of the list, compared whole: scheme, host and port.

    Channels' own AllowedHostsOriginValidator compares hosts only: a page of another program on another port of the
    same machine would pass, and the browser sends it our cookies.
    """

    def __init__(self, application: Any, origins: Iterable[str]) -> None:
        listed = list(origins)
        if not listed or any("*" in origin or "://" not in origin for origin in listed):
            raise ImproperlyConfigured(f"Sockets need full origins, as https://studio.example, not {listed}.")
        super().__init__(application, listed)

    def valid_origin(self, parsed_origin: ParseResult | None) -> bool:
        try:
            return bool(super().valid_origin(parsed_origin))
        except ValueError:
            # A port that is no number, or too large.
            return False
