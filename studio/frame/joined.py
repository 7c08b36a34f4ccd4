"""Scripts and styles that pages load together, as one file without comments: a fifth of the bytes of a first page.

They are joined when they are first needed, in a process that serves pages, so nothing is built or collected.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache, lru_cache
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpResponse
from django.urls import reverse

from studio.frame.guard import public
from studio.frame.pieces import HtmxRequest

STATIC = Path(__file__).parents[1] / "static"
TYPES = {".js": "text/javascript", ".css": "text/css"}
KEPT = "private, max-age=31536000, immutable"
FILES = {
    "frame.js": (
        "studio/frame/studio.js",
        "studio/frame/time.js",
        "studio/frame/notes.js",
        "studio/instance/instance.js",
        "studio/forms/forms.js",
        "studio/frame/clicks.js",
        "studio/frame/keys.js",
        "studio/live/live.js",
        "studio/live/rows.js",
        "studio/live/steady.js",
        "studio/forms/busy.js",
    ),
    "forms.js": (
        "studio/forms/editor.js",
        "studio/forms/drafts.js",
    ),
    "frame.css": (
        "studio/frame/base.css",
        "studio/frame/components.css",
        "studio/frame/tables.css",
    ),
    "steps.css": (
        "studio/instance/instance.css",
        "studio/instance/lanes.css",
        "studio/instance/stream.css",
    ),
    "steps.js": (
        "studio/instance/folds.js",
        "studio/instance/menu.js",
        "studio/instance/panes.js",
    ),
    "code.css": (
        "studio/instance/instance.css",
        "studio/diagram/diagram.css",
        "studio/diagram/painted.css",
    ),
    "code.js": (
        "studio/instance/menu.js",
        "studio/diagram/diagram.js",
    ),
}
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SCRIPT_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*.*?\*/)\n", re.DOTALL | re.MULTILINE)


def joined_address(name: str) -> str:
    """Return the address of a joined file, which changes with its content."""
    return f"{reverse('studio:joined', args=[name])}?{_digest(_text(name))}"


@public("GET")
def joined(request: HtmxRequest, file: str) -> HttpResponse:
    """Answer with a joined file."""
    if file not in FILES:
        raise Http404
    text = _text(file)
    # In the middle of an update, a page of the new version may ask a server of the old one: nobody keeps that answer.
    headers = {"Cache-Control": KEPT} if request.META["QUERY_STRING"] == _digest(text) else {}
    return HttpResponse(text, content_type=f"{TYPES[Path(file).suffix]}; charset=utf-8", headers=headers)


def _text(name: str) -> str:
    return _read(name) if settings.DEBUG else _read_once(name)


@cache
def _read_once(name: str) -> str:
    return _read(name)


def _read(name: str) -> str:
    return "".join(_bare(STATIC / file) for file in FILES[name])


def _bare(path: Path) -> str:
    """Return a file without its comments. Those behind code on a line stay in scripts, as `//` may be in a string."""
    comment = _STYLE_COMMENT if path.suffix == ".css" else _SCRIPT_COMMENT
    return comment.sub("", path.read_text(encoding="utf-8"))


@lru_cache(maxsize=16)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
