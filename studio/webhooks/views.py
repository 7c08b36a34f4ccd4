"""The list of webhooks, and the page of one: its deliveries, and what is changed without a form of its own."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone

from engine.status.sentences.bidi import isolated
from engine.values.errors import RepriseError
from studio.access.permissions import Verb
from studio.forms.tokens import new_token
from studio.frame.addresses import cursor, ignored
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.frame.pieces import page
from studio.models import Webhook
from studio.webhooks import deliveries, form, hooks, keys, queries
from studio.webhooks.keys import UnreadableSecretError
from studio.webhooks.live import WebhooksView, WebhookView


@guard(get=Verb.ADMINISTER)
def webhooks(request: HttpRequest) -> HttpResponse:
    drawing = WebhooksView().draw(request.user)
    return page(
        request,
        "studio/webhooks/webhooks.html",
        drawing,
        topic="topic=webhooks",
        ignored=ignored(request.GET, ()),
    )


@guard(get=Verb.ADMINISTER)
def webhook(request: HttpRequest, key: int) -> HttpResponse:
    return hook_page(request, queries.hook_of(key))


@guard(post=Verb.ADMINISTER, action="webhook-pause", about=queries.subject_of)
def pause(request: HttpRequest, key: int) -> HttpResponse:
    hook = queries.hook_of(key)
    if not hooks.pause(hook, by=request.user):
        return hook_page(request, hook, status=409, refused=f"{isolated(hook.name)} is already paused.")
    note(request, f"Paused {isolated(hook.name)}. Deliveries are answered with 503, so senders repeat them.")
    return HttpResponseRedirect(reverse("studio:webhook", args=[key]))


@guard(post=Verb.ADMINISTER, action="webhook-resume", about=queries.subject_of)
def resume(request: HttpRequest, key: int) -> HttpResponse:
    hook = queries.hook_of(key)
    if not hooks.resume(hook, by=request.user):
        return hook_page(request, hook, status=409, refused=f"{isolated(hook.name)} is not paused.")
    note(request, f"Resumed {isolated(hook.name)}.")
    return HttpResponseRedirect(reverse("studio:webhook", args=[key]))


@guard(post=Verb.ADMINISTER, action="webhook-rotate", about=queries.subject_of)
def rotate(request: HttpRequest, key: int) -> HttpResponse:
    """Set a new secret, and show it once if it was made here."""
    hook, typed = queries.hook_of(key), request.POST.get("secret", "").strip()
    problems = form.secret_problems(hook.scheme, typed)
    old_for = hooks.OLD_SECRET_FOR.get(request.POST.get("old_for", "24"))
    if problems or old_for is None:
        text = problems[0].message if problems else "Choose how long the old secret stays valid."
        return hook_page(request, hook, status=422, refused=f"The secret was not changed. {text}")
    secret = typed or deliveries.scheme_of(hook).new_secret()
    try:
        hooks.rotate(hook, secret, old_for=old_for, by=request.user)
    except UnreadableSecretError as error:
        return hook_page(request, hook, status=409, refused=str(error))
    if not typed:
        return hook_page(request, hook, secret=secret)
    note(request, f"Changed the secret of {isolated(hook.name)}.")
    return HttpResponseRedirect(reverse("studio:webhook", args=[key]))


@guard(post=Verb.ADMINISTER, action="webhook-delete", about=queries.subject_of)
def delete(request: HttpRequest, key: int) -> HttpResponse:
    hook, reason = queries.hook_of(key), request.POST.get("reason", "").strip()
    if not reason:
        return hook_page(request, hook, status=422, refused="Not deleted. Enter a reason.")
    try:
        hooks.delete(hook, by=request.user, reason=reason)
    except RepriseError as error:
        return hook_page(request, hook, status=422, refused=str(error))
    note(request, f"Deleted webhook {isolated(hook.name)}.")
    return HttpResponseRedirect(reverse("studio:webhooks"))


def hook_page(
    request: HttpRequest,
    hook: Webhook,
    *,
    status: int = 200,
    refused: str = "",
    secret: str = "",
    **more: Any,
) -> HttpResponse:
    """Render the page of a hook; `secret` is shown this once."""
    before, now = cursor(request.GET.get("before", "")), timezone.now()
    try:
        keys.secrets_of(hook, now)
        unreadable = ""
    except UnreadableSecretError as error:
        unreadable = str(error)
    view = WebhookView(hook.key, before)
    context: dict[str, Any] = {
        "hook": hook,
        "scheme": deliveries.scheme_of(hook),
        "address": queries.address_of(request, hook),
        "secret": secret,
        "unreadable": unreadable,
        "refused": refused,
        "ignored": ignored(request.GET, ("before",) if before else ()),
        "token": new_token(),
    }
    context |= {"drawing": view.draw(request.user), "topic": view.query, "status": status}
    return page(request, "studio/webhooks/webhook.html", **context | more)
