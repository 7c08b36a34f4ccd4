"""The options of httpx2 that keep the token where it belongs."""

from __future__ import annotations

import ssl
from typing import Any

import httpx2

from studio.client.settings import Settings


def options_of(settings: Settings, verify: ssl.SSLContext | bool) -> dict[str, Any]:
    """Return the options of a client of httpx2. Redirects are never followed: they would get the token."""
    return {
        "headers": settings.headers(),
        "timeout": httpx2.Timeout(settings.timeout, connect=settings.connect_timeout),
        "follow_redirects": False,
        "verify": verify,
        # A proxy from the environment would see a request to this machine, and its token, in plain text.
        "trust_env": settings.is_secure,
    }
