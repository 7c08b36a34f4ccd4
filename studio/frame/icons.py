"""The icons: browsers take them from the page's own host only, and STATIC_URL may be on another."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from django.http import HttpResponse
from django.templatetags.static import static
from django.urls import reverse

from studio.frame.guard import public
from studio.frame.pieces import HtmxRequest

SPRITE = "studio/vendor/lucide.svg"


def icons_address() -> str:
    """Return the address of the icons on this host."""
    address = static(SPRITE)
    if not urlsplit(address).netloc:
        return address
    return f"{reverse('studio:icons')}?{hashlib.sha256(_sprite()).hexdigest()[:12]}"


@public("GET")
def icons(request: HtmxRequest) -> HttpResponse:
    """Answer with the icons, for sites whose static files are on another host."""
    kept = "private, max-age=31536000, immutable"
    return HttpResponse(_sprite(), content_type="image/svg+xml", headers={"Cache-Control": kept})


@cache
def _sprite() -> bytes:
    return (Path(__file__).parents[1] / "static" / SPRITE).read_bytes()
