"""Make, change, pause and delete hooks; each change is in the audit trail, in the same transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from string import ascii_lowercase, digits
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.http import Http404
from django.utils import timezone
from django.utils.crypto import get_random_string
from django.utils.text import slugify

from engine.steer import audit, notify
from studio.models import Webhook
from studio.webhooks import keys

OLD_SECRET_FOR = {
    "0": timedelta(0),
    "1": timedelta(hours=1),
    "24": timedelta(days=1),
    "168": timedelta(days=7),
}
_CHARACTERS = ascii_lowercase + digits


class NameTakenError(Exception):
    """Another hook has the name."""


def create(values: Mapping[str, Any], secret: str, *, by: Any) -> Webhook:
    """Make a hook. Raises NameTakenError, or UnreadableSecretError without valid keys."""
    cause = audit.Cause.of(by)
    hook = Webhook(
        **values, slug=_new_slug(values["name"]), secret=keys.sealed(secret), created_by=cause.actor
    )
    try:
        with transaction.atomic():
            hook.save(force_insert=True)
            _note("webhook-create", hook, cause)
    except IntegrityError:
        raise NameTakenError from None
    hook.refresh_from_db()
    return hook


def change(hook: Webhook, values: Mapping[str, Any], *, by: Any) -> list[str]:
    """Change what is different; return the names of it. Raises NameTakenError, or Http404 if it was deleted."""
    changed = [name for name, value in values.items() if getattr(hook, name) != value]
    if not changed:
        return []
    cause = audit.Cause.of(by)
    try:
        with transaction.atomic():
            rows = Webhook.objects.filter(key=hook.key)
            if not rows.update(**{name: values[name] for name in changed}):
                raise Http404
            hook.refresh_from_db()
            _note("webhook-change", hook, cause, changed=changed)
    except IntegrityError:
        raise NameTakenError from None
    return changed


def rotate(hook: Webhook, secret: str, *, old_for: timedelta, by: Any) -> None:
    """Set a new secret; the one before stays valid for a while. Raises Http404 if the hook was deleted."""
    cause = audit.Cause.of(by)
    until = timezone.now() + old_for if old_for else None
    with transaction.atomic():
        # In one statement, so that of two rotations the second keeps the secret of the first as the old one.
        if not Webhook.objects.filter(key=hook.key).update(
            old_secret=F("secret") if until else "", old_secret_until=until, secret=keys.sealed(secret)
        ):
            raise Http404
        _note("webhook-rotate", hook, cause, old_until=until.isoformat() if until else None)
    hook.refresh_from_db()


def pause(hook: Webhook, *, by: Any) -> bool:
    """Refuse deliveries until it is resumed. Return whether this call paused it."""
    cause = audit.Cause.of(by)
    with transaction.atomic():
        rows = Webhook.objects.filter(key=hook.key, paused_at=None)
        if not rows.update(paused_at=Now(), paused_by=cause.actor):
            return False
        _note("webhook-pause", hook, cause)
    return True


def resume(hook: Webhook, *, by: Any) -> bool:
    cause = audit.Cause.of(by)
    with transaction.atomic():
        rows = Webhook.objects.filter(key=hook.key, paused_at__isnull=False)
        if not rows.update(paused_at=None, paused_by=""):
            return False
        _note("webhook-resume", hook, cause)
    return True


def delete(hook: Webhook, *, by: Any, reason: str) -> bool:
    """Delete a hook with its deliveries. What they did stays."""
    cause = audit.Cause.of(by, reason)
    with transaction.atomic():
        deleted, _ = Webhook.objects.filter(key=hook.key).delete()
        if not deleted:
            return False
        _note("webhook-delete", hook, cause)
    return True


def note_sending(verb: str, hook: Webhook, delivery_id: str, *, by: Any) -> None:
    """Record that a person sends a test, or a delivery again."""
    _note(verb, hook, audit.Cause.of(by), delivery=delivery_id)


def _note(verb: str, hook: Webhook, cause: audit.Cause, **data: Any) -> None:
    audit.note(verb, hook.workflow, cause, data={"webhook": hook.name, **data})
    notify.changed_elsewhere()


def _new_slug(name: str) -> str:
    """Return the last part of the address, which cannot be guessed from the name."""
    random = get_random_string(16, _CHARACTERS)
    return "-".join(part for part in (slugify(name)[:40].strip("-_"), random) if part)
