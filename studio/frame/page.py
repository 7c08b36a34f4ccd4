"""Render pages whose pieces are also updated through the socket."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import mark_safe

from studio.frame.pieces import Drawing


def page(
    request: HttpRequest,
    template: str,
    drawing: Drawing | None = None,
    *,
    topic: str = "",
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """Render a page. Its context has `pieces`, rendered by the same code as for the socket."""
    if drawing is not None:
        # Safe: each piece is the output of a template, which escapes values.
        safe = {name.replace("-", "_"): mark_safe(piece.html) for name, piece in drawing.pieces.items()}  # noqa: S308
        context["pieces"] = safe
        context["forms"] = drawing.forms
        context["steps"] = [safe[name.replace("-", "_")] for name in drawing.order]
    return render(request, template, {"topic": topic, **context}, status=status)
