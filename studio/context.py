"""What every page's frame needs."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from studio.accounts.session import THEMES
from studio.approvals import queries as inbox


def frame(request: HttpRequest) -> dict[str, Any]:
    """Return the colours from their cookie and the server's time. Asks no database by itself."""
    theme = request.COOKIES.get("studio-theme", "system")
    return {
        "theme": theme if theme in THEMES else "system",
        "server_time": timezone.now(),
        "approvals_mine": lambda: inbox.count_mine(request.user),
    }
