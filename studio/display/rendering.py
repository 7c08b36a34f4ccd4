"""Render the Studio's templates, whatever language and number format the site has.

The Studio is in English, and numbers are part of ids and addresses: with a thousands separator, `#i-1.234` selects
something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.template.context import make_context


def render_to_string(
    name: str, context: Mapping[str, Any] | None = None, request: HttpRequest | None = None
) -> str:
    """Render a template, with numbers and times as Python writes them."""
    template: Any = loader.get_template(name)
    made = make_context(dict(context or {}), request, autoescape=template.backend.engine.autoescape)
    made.use_l10n = False
    return str(template.template.render(made))


def render(
    request: HttpRequest, name: str, context: Mapping[str, Any] | None = None, *, status: int = 200
) -> HttpResponse:
    """Answer with a rendered template."""
    return HttpResponse(render_to_string(name, context, request), status=status)
