"""The address of a hook: size, signature and rate are checked before anything is parsed."""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone

from studio.access.addresses import address_of
from studio.access.anonymous_queue import release_turn
from studio.api.body import read_whole
from studio.api.door import HEADERS, refused
from studio.api.problems import ProblemError, problem
from studio.frame.guard import Rule, add_rule
from studio.models import Webhook
from studio.webhooks import deliveries, limits
from studio.webhooks.acting import REFUSED
from studio.webhooks.deliveries import Accepted
from studio.webhooks.incoming import Headers, Incoming
from studio.webhooks.keys import UnreadableSecretError
from studio.webhooks.reading import MOST_BYTES
from studio.webhooks.refusals import DeliveryError, NotGenuineError
from studio.webhooks.schemes import slack
from studio.webhooks.slack_answers import challenge_of

log = logging.getLogger("studio")

METHODS = ("POST",)


@transaction.non_atomic_requests  # what a delivery does and its row have a transaction of their own
def receive(request: HttpRequest, slug: str) -> HttpResponse:
    """Accept a delivery."""
    try:
        response = _received(request, slug)
    except NotGenuineError as error:
        response = problem(_not_genuine(error))
    except DeliveryError as error:
        response = problem(ProblemError(error.status, error.code, error.detail))
    except Exception as error:  # noqa: BLE001  whatever goes wrong, the sender gets a problem
        response = refused(request, error)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _received(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method not in METHODS:
        detail = f"This address takes POST, not {str(request.method)[:20]}."
        raise ProblemError(405, "method_not_allowed", detail, headers={"Allow": ", ".join(METHODS)})
    incoming = Incoming(Headers.of(request), read_whole(request, MOST_BYTES))
    hook = Webhook.objects.filter(slug=slug).first()
    if hook is None:
        raise Http404
    _check(request, hook, incoming)
    release_turn(getattr(request, "scope", {}))
    if hook.is_paused:
        raise ProblemError(
            503, "paused", "This webhook is paused. Send again later.", headers={"Retry-After": "300"}
        )
    limits.spend(hook)
    challenge = challenge_of(hook, incoming)
    if challenge is not None:
        return JsonResponse({"challenge": challenge})
    return answer(hook, incoming, deliveries.accept(hook, incoming))


def _check(request: HttpRequest, hook: Webhook, incoming: Incoming) -> None:
    """Raise NotGenuineError, or ProblemError with 429, unless the delivery is from who knows the secret."""
    try:
        deliveries.verify(hook, incoming, timezone.now())
    except NotGenuineError as error:
        limits.count_wrong(address_of(request))
        deliveries.count_refusal(hook, error.detail)
        raise
    except UnreadableSecretError as error:
        log.warning("Webhook %s cannot verify its deliveries: %s", hook.name, error)
        detail = "The secret of this webhook cannot be read. Its owner must set it again."
        raise ProblemError(503, "secret_key_missing", detail, headers={"Retry-After": "300"}) from None


def answer(hook: Webhook, incoming: Incoming, accepted: Accepted) -> HttpResponse:
    """Return the answer to a delivery, which is that of the first one if it came before."""
    row = accepted.row
    if row.outcome == REFUSED:
        return problem(ProblemError(row.status, row.code, row.error, errors=accepted.errors))
    if hook.scheme == slack.SLACK.name and incoming.is_form:
        return HttpResponse(status=200)  # Slack shows people what a command answers
    document: dict[str, Any] = {"outcome": row.outcome, "delivery": row.delivery_id}
    document |= {"is_repeated": accepted.is_repeated}
    if row.instance_id:
        document |= {"workflow": row.workflow, "instance": row.instance_id}
    if row.event_type:
        document |= {"event": row.event_type}
    if row.error:
        document |= {"reason": row.error}
    return JsonResponse(document, status=row.status)


def _not_genuine(error: NotGenuineError) -> ProblemError:
    headers = {"WWW-Authenticate": "Webhook"} if error.status == 401 else {}
    return ProblemError(error.status, error.code, error.detail, headers=headers)


receive.csrf_exempt = True  # type: ignore[attr-defined]  # nothing here reads cookies
receive.login_required = False  # type: ignore[attr-defined]
add_rule(receive, Rule(METHODS, {}, strangers_bytes=MOST_BYTES, is_signed=True))
