"""Notes of people and programs on an instance.

A note is a row of the audit trail: verb `note`, its text as the reason. It changes nothing of the instance, and waits
for no worker: it holds the instance's row only against deletion.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from django.apps import apps
from django.db import connection, transaction

from engine.models import Audit, Instance
from engine.steer import audit, notify
from engine.values import between_steps
from engine.values.argument import Argument
from engine.values.errors import InstanceNotFoundError, InvalidValueError, LimitError
from engine.values.mentions import mentions_in

VERB = "note"
MAX_NOTE = 4_000
MAX_MENTIONS = 50
RECENT = 100  # actions among which a form that is sent twice finds its note

_HOLD = "SELECT status FROM engine_instance WHERE key = %s FOR KEY SHARE"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def add_note(instance: Instance, text: str, *, by: object = None, form: str | None = None) -> Audit:
    """Add a note to the instance, in any status, and return its row of the audit trail.

    `data["mentions"]` has the active users that it names with an `@`. Another note with the same `form` and text is the
    same note. Raises InstanceNotFoundError, InvalidNameError, InvalidValueError or LimitError; then nothing is written.
    """
    between_steps.refuse("add_note")
    with Argument("text"):
        text = check_note(text)
    cause = replace(audit.Cause.of(by), reason=text)
    mentions = mentioned(text)
    data = ({"mentions": mentions} if mentions else {}) | ({} if form is None else {"form": form})
    with transaction.atomic():
        status = _hold(instance, form)
        if form is not None and (earlier := _earlier(instance, form, text)) is not None:
            return earlier
        (row,) = audit.write(VERB, [instance], cause, before=status, after=status, data=data or None)
        notify.tell(changed=[instance.key])
    return row


def check_note(text: str) -> str:
    """Return a note as it is stored: with plain line ends, without blanks around it.

    Raises InvalidValueError or LimitError.
    """
    if not isinstance(text, str):
        raise InvalidValueError("$", "not_text", "It must be a string.", what="note")
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if not text:
        raise InvalidValueError("$", "blank", "It has no text. Write something.", what="note")
    if len(text) > MAX_NOTE:
        raise LimitError("length of the note", len(text), MAX_NOTE, unit="characters")
    if audit.is_unstorable(text):
        raise InvalidValueError("$", "unstorable", "It contains NUL or a lone surrogate.", what="note")
    return text


def mentioned(text: str) -> list[str]:
    """Return the names of the active users that a text mentions, in its order."""
    found = list(mentions_in(text))
    known = _users({name for mention in found for name in mention.names}) if found else frozenset()
    names = dict.fromkeys(mention.meant(known) for mention in found)
    return [name for name in names if name is not None][:MAX_MENTIONS]


def keep_forms_apart(form: str) -> None:
    """Let one send of a form wait for the other, so that the second sees the note of the first."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [f"note:{form}"])


def _users(names: Collection[str]) -> frozenset[str]:
    if not apps.is_installed("django.contrib.auth"):
        return frozenset()
    from django.contrib.auth import get_user_model

    users = get_user_model()
    found = users._default_manager.filter(**{f"{users.USERNAME_FIELD}__in": names})
    return frozenset(user.get_username() for user in found if user.is_active)


def _hold(instance: Instance, form: str | None) -> str:
    """Keep the instance from being deleted until the transaction ends. Return its status."""
    if form is not None:
        keep_forms_apart(form)
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [instance.key])
        row = cursor.fetchone()
    if row is None:
        raise InstanceNotFoundError(instance.workflow, instance.id)
    return str(row[0])


def _earlier(instance: Instance, form: str, text: str) -> Audit | None:
    recent = Audit.objects.filter(instance_key=instance.key).order_by("-key")[:RECENT]
    return next((row for row in recent if row.is_note and row.reason == text and _form_of(row) == form), None)


def _form_of(row: Audit) -> object:
    return row.data.get("form") if isinstance(row.data, dict) else None
