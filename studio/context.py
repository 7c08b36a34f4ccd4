"""The template context of every page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from studio.accounts.session import THEMES
from studio.approvals import queries as inbox


def frame(request: HttpRequest) -> dict[str, Any]:
    """Return the theme from its cookie, the server's time, and the count of approvals, which queries only when used."""
    theme = request.COOKIES.get("studio-theme", "system")
    return {
        "theme": theme if theme in THEMES else "system",
        "server_time": timezone.now(),
        "approvals_mine": lambda: inbox.count_mine(request.user),
    }
