"""Notes of people and programs on a group of failures.

A note is a row of the audit trail: verb `error-note`, its text as the reason, the group as `data["error"]`. It changes
nothing of the group, and outlives it.
"""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction

from engine.models import Audit, Failure
from engine.steer import audit, notify
from engine.steer.notes import check_note, keep_forms_apart, mentioned
from engine.values.argument import Argument
from engine.values.errors import FailureNotFoundError

VERB = "error-note"


def add_note(fingerprint: str, text: str, *, by: object = None, form: str | None = None) -> Audit:
    """Add a note to a group of failures, in any state, and return its row of the audit trail.

    `data["mentions"]` has the active users that it names with an `@`. Another note with the same `form` and text is the
    same note. Raises FailureNotFoundError, InvalidNameError, InvalidValueError or LimitError; then nothing is written.
    """
    with Argument("text"):
        text = check_note(text)
    cause = replace(audit.Cause.of(by), reason=text)
    mentions = mentioned(text)
    with transaction.atomic():
        workflow = Failure.objects.filter(fingerprint=fingerprint).values_list("workflow", flat=True).first()
        if workflow is None:
            raise FailureNotFoundError(fingerprint)
        if form is not None:
            keep_forms_apart(form)
            if (earlier := _earlier(fingerprint, form, text)) is not None:
                return earlier
        data = {"error": fingerprint} | ({"mentions": mentions} if mentions else {})
        row = audit.note(VERB, workflow, cause, data=data | ({} if form is None else {"form": form}))
        notify.changed_elsewhere()
    return row


def _earlier(fingerprint: str, form: str, text: str) -> Audit | None:
    about = Audit.objects.about_errors([fingerprint]).filter(verb=VERB, reason=text)
    return next((row for row in about if isinstance(row.data, dict) and row.data.get("form") == form), None)
