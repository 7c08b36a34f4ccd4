"""What the pages of hooks show."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import OuterRef, Subquery
from django.http import Http404, HttpRequest
from django.urls import reverse

from engine.models import Instance
from studio.access.denied_audit import Subject
from studio.frame.guard import Names
from studio.models import Webhook, WebhookDelivery
from studio.webhooks.schemes import SCHEMES

PAGE = 50
MOST_HOOKS = 500
# How outcomes look: a status for color and icon, and the word for a start and for an event.
LOOKS = {
    "done": ("complete", "started", "event sent"),
    "known": ("queued", "already there", "already sent"),
    "ignored": ("queued", "ignored", "ignored"),
    "refused": ("errored", "refused", "refused"),
}


@dataclass(frozen=True, slots=True)
class Listed:
    """A hook in the list, with its last delivery."""

    row: Webhook
    last: WebhookDelivery | None

    @property
    def label(self) -> str:
        return SCHEMES[self.row.scheme].label

    @property
    def shown(self) -> Shown | None:
        return Shown(self.last) if self.last is not None else None


@dataclass(frozen=True, slots=True)
class Shown:
    """A delivery as pages show it."""

    row: WebhookDelivery
    has_instance: bool = False

    @property
    def look(self) -> str:
        return LOOKS[self.row.outcome][0]

    @property
    def word(self) -> str:
        # By the row: the hook may have been changed since.
        return LOOKS[self.row.outcome][2 if self.row.event_type else 1]


@dataclass(frozen=True, slots=True)
class Page:
    deliveries: list[Shown]
    older: int | None


def hooks() -> list[Listed]:
    """Return all hooks by name."""
    newest = WebhookDelivery.objects.filter(webhook=OuterRef("key")).order_by("-key").values("key")[:1]
    rows = list(Webhook.objects.annotate(newest=Subquery(newest)).order_by("name")[:MOST_HOOKS])
    keys = [row.newest for row in rows if row.newest is not None]
    last = {one.webhook_id: one for one in WebhookDelivery.objects.defer("body").filter(key__in=keys)}
    return [Listed(row, last.get(row.key)) for row in rows]


def page_of(hook: Webhook, before: int | None) -> Page:
    """Return a page of deliveries, newest first."""
    rows = WebhookDelivery.objects.filter(webhook=hook).defer("body").order_by("-key")
    found = list((rows.filter(key__lt=before) if before is not None else rows)[: PAGE + 1])
    ids = {row.instance_id for row in found if row.instance_id}
    names = {row.workflow for row in found}  # the hook may have been changed to another
    there = set(Instance.objects.filter(workflow__in=names, id__in=ids).values_list("workflow", "id"))
    shown = [Shown(row, (row.workflow, row.instance_id) in there) for row in found[:PAGE]]
    return Page(shown, found[PAGE - 1].key if len(found) > PAGE else None)


def hook_of(key: int) -> Webhook:
    """Return a hook. Raises Http404."""
    hook = Webhook.objects.filter(key=key).first()
    if hook is None:
        raise Http404
    return hook


def delivery_of(hook: Webhook, key: int) -> WebhookDelivery:
    """Return a delivery with its body. Raises Http404."""
    found = WebhookDelivery.objects.filter(webhook=hook, key=key).first()
    if found is None:
        raise Http404
    return found


def address_of(request: HttpRequest, hook: Webhook) -> str:
    """Return the address to which the sender delivers."""
    return request.build_absolute_uri(reverse("studio:hook", args=[hook.slug]))


def subject_of(names: Names) -> Subject:
    """Return the subject of the addresses of a hook, for the audit trail."""
    hook = Webhook.objects.filter(key=names["key"]).first() if "key" in names else None
    return Subject(hook.workflow, data={"webhook": hook.name}) if hook is not None else Subject(None)
