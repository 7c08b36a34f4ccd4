"""The probes as views, for servers other than daphne; under daphne, `studio.server.probes` answers them."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse

from engine.configuration import setting
from studio.access.addresses import is_listed_request
from studio.frame.guard import public
from studio.frame.pieces import HtmxRequest
from studio.health import answers
from studio.health.answers import ProbeAnswer
from studio.health.audience import EVERYBODY, LISTED, Audience, audience_of, names_sender
from studio.health.readiness import details, readiness


@public("GET")
def healthz(request: HtmxRequest) -> HttpResponse:
    """Answer 200."""
    return _response(answers.alive())


@public("GET")
def readyz(request: HtmxRequest) -> HttpResponse:
    """Answer 200 if the database answers and is migrated, else 503 with the reason."""
    found = readiness.wait()
    if not found.is_ready:
        return _response(answers.unready(found))
    audience = _audience_of(request)
    return _response(answers.ready(audience, details.wait() if audience.sees_details else None))


def _audience_of(request: HtmxRequest) -> Audience:
    if is_listed_request(request, setting("HEALTH_ADDRESSES")):
        return LISTED
    is_named = names_sender(request.headers.get("Authorization", ""))
    return audience_of(request) if is_named else EVERYBODY


def _response(answer: ProbeAnswer) -> HttpResponse:
    return HttpResponse(answer.body, status=answer.status, headers=answer.headers)


for _probe in (healthz, readyz):
    # On a site that wraps views in transactions, /healthz would ask the database, and /readyz hold the lock on a count.
    _probe._non_atomic_requests = set(settings.DATABASES)  # type: ignore[attr-defined]
