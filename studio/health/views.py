"""The probes as views, for servers other than daphne; under daphne, `studio.server.probes` answers them."""

from __future__ import annotations

from django.http import HttpResponse

from engine.configuration import setting
from studio.access.addresses import is_listed_request
from studio.frame.guard import public
from studio.frame.pieces import HtmxRequest
from studio.health import answers
from studio.health.answers import HEADERS, ProbeAnswer
from studio.health.readiness import details, readiness


@public("GET")
def healthz(request: HtmxRequest) -> HttpResponse:
    """Answer 200."""
    return _response(answers.alive())


@public("GET")
def readyz(request: HtmxRequest) -> HttpResponse:
    """Answer 200 if the database answers and is migrated, else 503 with the reason."""
    found = readiness.wait()
    is_listed = is_listed_request(request, setting("HEALTH_ADDRESSES"))
    return _response(answers.ready(found, details.wait() if is_listed and found.is_ready else None))


def _response(answer: ProbeAnswer) -> HttpResponse:
    return HttpResponse(answer.body, status=answer.status, headers=HEADERS)
