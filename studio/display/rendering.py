"""Render the Studio's templates, whatever templates, language and number format the site has.

Django's TEMPLATES has no part in it: an option such as "autoescape" or "string_if_invalid", a context processor or a
template of the site would change pages that hold what others typed. The Studio is in English, and numbers are part of
ids and addresses: with a thousands separator, `#i-1.234` selects something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template import Engine
from django.template.context import make_context

from studio.display.isolation import with_elements

FOLDER = Path(__file__).parents[1] / "templates"
LIBRARIES = {"static": "django.templatetags.static", "studio_tags": "studio.templatetags.studio_tags"}


def render_to_string(
    name: str, context: Mapping[str, Any] | None = None, request: HttpRequest | None = None
) -> str:
    """Render a template, with numbers and times as Python writes them, and isolated text in elements."""
    made = make_context(dict(context or {}), request)
    made.use_l10n = False
    return with_elements(str(_engine().get_template(name).render(made)))


def render(
    request: HttpRequest, name: str, context: Mapping[str, Any] | None = None, *, status: int = 200
) -> HttpResponse:
    """Answer with a rendered template."""
    return HttpResponse(render_to_string(name, context, request), status=status)


@cache
def _engine() -> Engine:
    return Engine(dirs=[str(FOLDER)], libraries=LIBRARIES)
