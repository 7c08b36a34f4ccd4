"""The page of charts, and its numbers as a file."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from engine.status.search import workflow_names
from studio.access.permissions import Verb, visible
from studio.charts.address import ChartsAddress
from studio.charts.file import as_csv
from studio.charts.live import ChartsView
from studio.charts.numbers import numbers_of
from studio.frame.errors import bad_request
from studio.frame.guard import guard
from studio.frame.pieces import page


@guard(get=Verb.VIEW)
def charts(request: HttpRequest) -> HttpResponse:
    names = visible(request.user, workflow_names())
    asked = ChartsAddress.of(request.GET).among(names)
    return page(
        request,
        "studio/charts/charts.html",
        ChartsView(asked).draw(request.user),
        topic=urlencode({"topic": "charts", **asked.parameters}),
        asked=asked,
        ignored=asked.ignored(request.GET),
        names=names,
    )


@guard(get=Verb.VIEW)
def export(request: HttpRequest) -> HttpResponse:
    """Answer with the numbers of all charts as a file, or 400 to an unknown filter."""
    names = visible(request.user, workflow_names())
    asked = ChartsAddress.of(request.GET).among(names)
    if asked.ignored(request.GET):
        return bad_request(request)  # a file cannot say that it contains more than was asked for
    name = "-".join(("charts", *([asked.workflow] if asked.workflow else []), asked.range.name))
    return HttpResponse(
        as_csv(numbers_of(asked, names)),
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{name}.csv"',
            "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
        },
    )
