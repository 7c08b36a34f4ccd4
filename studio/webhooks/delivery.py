"""The page of one delivery, sending it again, and sending a test."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from engine.models import Instance
from engine.values.serialization import InvalidJSON, read_json
from studio.access.permissions import Verb
from studio.display import payloads
from studio.forms.tokens import new_token, token_of
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.frame.pieces import page
from studio.models import WebhookDelivery
from studio.webhooks import hand, keys, queries, secret_bodies
from studio.webhooks.acting import REFUSED
from studio.webhooks.deliveries import Accepted
from studio.webhooks.hand import BodyGoneError
from studio.webhooks.keys import UnreadableSecretError
from studio.webhooks.preview import headers_of
from studio.webhooks.queries import Shown
from studio.webhooks.refusals import DeliveryError
from studio.webhooks.views import hook_page

BODY_SHOWN = 20_000


@guard(get=Verb.ADMINISTER)
def delivery(request: HttpRequest, key: int, seq: int) -> HttpResponse:
    return _page(request, queries.delivery_of(queries.hook_of(key), seq))


@guard(post=Verb.ADMINISTER, action="webhook-send-again", about=queries.subject_of)
def send_again(request: HttpRequest, key: int, seq: int) -> HttpResponse:
    """Send a delivery again. The form's token is part of the new one's id, so a double click sends one."""
    row = queries.delivery_of(queries.hook_of(key), seq)
    try:
        accepted = hand.send_again(row, token=token_of(request.POST.get("token", "")), by=request.user)
    except BodyGoneError:
        return _page(request, row, status=409, refused="Not sent: its body is not kept any more.")
    except (UnreadableSecretError, DeliveryError) as error:
        return _page(request, row, status=409, refused=f"Not sent. {error}")
    return _sent(request, key, accepted, "Sent again")


@guard(post=Verb.ADMINISTER, action="webhook-test", takes_payload=True, about=queries.subject_of)
def test(request: HttpRequest, key: int) -> HttpResponse:
    """Send the typed body, signed with the hook's own secret."""
    hook = queries.hook_of(key)
    body = request.POST.get("body", "").replace("\r\n", "\n")
    headers = request.POST.get("headers", "")
    typed: dict[str, Any] = {"test_body": body, "test_headers": headers, "is_testing": True}
    try:
        read_json(body, what="payload")
        accepted = hand.send_test(hook, body.encode(), headers_of(headers), by=request.user)
    except InvalidJSON as error:
        where = f"line {error.line}, column {error.column}"
        return hook_page(request, hook, status=422, refused=f"Not sent: {error.message} ({where}).", **typed)
    except (UnreadableSecretError, DeliveryError) as error:
        return hook_page(request, hook, status=409, refused=f"Not sent. {error}", **typed)
    return _sent(request, key, accepted, "Sent a test")


def _sent(request: HttpRequest, key: int, accepted: Accepted, what: str) -> HttpResponse:
    row = accepted.row
    if row.outcome == REFUSED:
        note(request, f"{what}. It was refused: {row.error[:200]}")
    else:
        shown = Shown(row)
        note(request, f"{what}: {shown.word}{f' {row.instance_id}' if row.instance_id else ''}.")
    return HttpResponseRedirect(reverse("studio:webhook-delivery", args=[key, row.key]))


def _page(
    request: HttpRequest, row: WebhookDelivery, *, status: int = 200, refused: str = ""
) -> HttpResponse:
    hook = row.webhook
    is_there = Instance.objects.filter(workflow=row.workflow, id=row.instance_id).exists()
    is_secret, problem, body = secret_bodies.is_hidden(row), "", None
    if row.body is not None and not is_secret:
        try:
            text = keys.opened_body(row.body).decode(errors="replace")
            body = payloads.payload("body", text, full_up_to=BODY_SHOWN)
        except UnreadableSecretError as error:
            problem = str(error)
    return page(
        request,
        "studio/webhooks/delivery.html",
        status=status,
        hook=hook,
        shown=Shown(row, is_there),
        body=body,
        is_secret=is_secret,
        problem=problem,
        original=WebhookDelivery.objects.filter(key=row.again_of).first() if row.again_of else None,
        refused=refused,
        token=new_token(),
    )
