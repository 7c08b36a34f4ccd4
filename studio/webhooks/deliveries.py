"""Accept deliveries: each does what its hook says once, however often and in how many requests at once it comes.

The row of a delivery and what it does are written in one transaction. If the process dies before the answer, the
repeated delivery finds the row, and gets the first outcome. A refused delivery is tried again when it is repeated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from engine.steer import notify
from engine.values.errors import RepriseError
from engine.values.json_type import JSON
from studio.api.problems import ProblemError, WrongField, of_engine
from studio.models import Webhook, WebhookDelivery
from studio.webhooks import acting, keys, reading, sweeping
from studio.webhooks.acting import REFUSED, Outcome
from studio.webhooks.incoming import Incoming
from studio.webhooks.mapping import MappingError
from studio.webhooks.refusals import DeliveryError
from studio.webhooks.schemes import SCHEMES
from studio.webhooks.schemes.scheme import Details, Scheme
from studio.webhooks.secret_bodies import may_hold_secrets
from studio.webhooks.sources import Given

# Waits for a transaction that has inserted the same delivery. The row of the hook must be there until the end.
_CLAIM = """
INSERT INTO studio_webhookdelivery AS held (webhook_id, delivery_id, received_at, last_at, count, outcome, status, code,
       error, workflow, instance_id, event_type, size, body, is_secret, headers, is_test, again_of,
       sent_by)
SELECT key, %(delivery_id)s, clock_timestamp(), clock_timestamp(), 1, '', 0, '', '', workflow, '', '', %(size)s,
       %(body)s, %(is_secret)s, %(headers)s::jsonb, %(is_test)s, %(again_of)s, %(sent_by)s
  FROM studio_webhook WHERE key = %(hook)s FOR KEY SHARE
    ON CONFLICT (webhook_id, delivery_id) DO UPDATE
   SET count = held.count + 1, last_at = clock_timestamp(),
       size = CASE WHEN held.outcome = 'refused' THEN excluded.size ELSE held.size END,
       body = CASE WHEN held.outcome = 'refused' THEN excluded.body ELSE held.body END,
       is_secret = held.is_secret OR (held.outcome = 'refused' AND excluded.is_secret),
       headers = CASE WHEN held.outcome = 'refused' THEN excluded.headers ELSE held.headers END
RETURNING key
"""


@dataclass(frozen=True, slots=True)
class Sender:
    """A person who sends a delivery as a test, or again; nobody for a delivery from outside."""

    name: str = ""
    is_test: bool = False
    again_of: int | None = None
    is_secret: bool = False  # what is sent again was hidden


@dataclass(frozen=True, slots=True)
class Accepted:
    """A delivery with its outcome. `errors` are the wrong fields of a refused one."""

    row: WebhookDelivery
    is_repeated: bool = False
    errors: tuple[WrongField, ...] = ()


NOBODY = Sender()


def scheme_of(hook: Webhook) -> Scheme:
    return SCHEMES[hook.scheme]


def details_of(hook: Webhook) -> Details:
    return Details(hook.secret_header, hook.delivery_id_from)


def verify(hook: Webhook, incoming: Incoming, now: datetime) -> None:
    """Raise NotGenuineError unless a valid secret of the hook has signed the delivery, or UnreadableSecretError."""
    secrets = keys.secrets_of(hook, now)
    scheme_of(hook).verify(incoming, secrets, details_of(hook), now.timestamp())


def accept(hook: Webhook, incoming: Incoming, sender: Sender = NOBODY, *, delivery_id: str = "") -> Accepted:
    """Do what a verified delivery does, unless it has been done before, and record the outcome.

    `delivery_id` replaces the sender's own. Raises NotGenuineError for an id that is not one, and DeliveryError with
    404 if the hook has been deleted meanwhile.
    """
    payload, problem = _read(incoming)
    scheme, details = scheme_of(hook), details_of(hook)
    own = delivery_id or scheme.id_of(incoming, details) or scheme.id_in(payload, details)
    chosen = own or f"body-{hashlib.sha256(incoming.body).hexdigest()}"
    kept = _kept_headers(hook, incoming)
    with transaction.atomic():
        row = _claim(hook, incoming, chosen, kept, sender)
        notify.changed_elsewhere()
        if row.outcome not in ("", REFUSED):
            return Accepted(row, is_repeated=True)
        outcome, refusal = _outcome(hook, payload, kept, chosen, problem)
        _record(row, hook.workflow, outcome, refusal)
    if row.key % sweeping.EVERY == 0:
        sweeping.sweep(hook)
    return Accepted(row, errors=tuple(refusal.errors) if refusal is not None else ())


def _read(incoming: Incoming) -> tuple[JSON, ProblemError | None]:
    try:
        return reading.read(incoming), None
    except (DeliveryError, RepriseError) as error:
        return None, _refusal(error)


def _outcome(
    hook: Webhook, payload: JSON, headers: Mapping[str, str], delivery_id: str, problem: ProblemError | None
) -> tuple[Outcome | None, ProblemError | None]:
    """Act. Of a refusal, nothing stays written."""
    if problem is not None:
        return None, problem
    try:
        with transaction.atomic():
            rules = acting.written(hook).read()
            return acting.act(hook, rules, Given(payload, headers), delivery_id), None
    except (DeliveryError, RepriseError, MappingError) as error:
        return None, _refusal(error)


def _refusal(error: Exception) -> ProblemError:
    if isinstance(error, RepriseError):
        return of_engine(error)
    if isinstance(error, DeliveryError):
        errors: list[WrongField] = (
            [{"path": error.field, "code": error.code, "message": error.detail}] if error.field else []
        )
        return ProblemError(error.status, error.code, error.detail, errors=errors)
    return ProblemError(409, "invalid_mapping", f"The webhook cannot be used as it is. {error}")


def _claim(
    hook: Webhook, incoming: Incoming, delivery_id: str, headers: Mapping[str, str], sender: Sender
) -> WebhookDelivery:
    """Return the row of a delivery, locked until the transaction ends."""
    values: dict[str, Any] = {
        "hook": hook.key,
        "delivery_id": delivery_id,
        "size": len(incoming.body),
        "body": keys.sealed_body(incoming.body),
        "is_secret": sender.is_secret or may_hold_secrets(hook),
        "headers": json.dumps(headers),
        "is_test": sender.is_test,
        "again_of": sender.again_of,
        "sent_by": sender.name[:150],
    }
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, values)
        claimed = cursor.fetchone()
    if claimed is None:
        raise DeliveryError(404, "not_found", "There is nothing at this address.")
    return WebhookDelivery.objects.defer("body").get(key=claimed[0])


def _record(
    row: WebhookDelivery, workflow: str, outcome: Outcome | None, refusal: ProblemError | None
) -> None:
    row.workflow = workflow  # the hook may have changed since it was refused
    if refusal is not None:
        said = "; ".join(f"{one['path']}: {one['message']}" for one in refusal.errors if one["path"])
        row.outcome, row.status, row.code = REFUSED, refusal.status, refusal.code
        row.error = (said if said and refusal.code == "invalid_params" else refusal.detail)[:2_000]
    else:
        assert outcome is not None
        row.outcome, row.status, row.code, row.error = outcome.outcome, outcome.status, "", outcome.because
        row.instance_id, row.event_type = outcome.instance_id, outcome.event_type
    fields = ("workflow", "outcome", "status", "code", "error", "instance_id", "event_type")
    WebhookDelivery.objects.filter(key=row.key).update(**{name: getattr(row, name) for name in fields})


def _kept_headers(hook: Webhook, incoming: Incoming) -> dict[str, str]:
    """Return the headers that the mapping and the scheme read; no other is kept."""
    try:
        wanted = acting.written(hook).read().headers
    except MappingError:
        wanted = set()
    return incoming.headers.some([*wanted, *scheme_of(hook).kept_headers, "content-type"])


def count_refusal(hook: Webhook, because: str) -> None:
    """Count a request that was not signed with the secret. Nothing of it is stored."""
    with transaction.atomic():
        Webhook.objects.filter(key=hook.key).update(
            refused=F("refused") + 1, refused_at=Now(), refused_because=because[:200]
        )
        notify.changed_elsewhere()
