"""The Studio's own tables: access, limits, tokens, answers of the HTTP API, saved views, start templates, webhooks."""

from studio.models.access import Access
from studio.models.idempotency import IdempotencyKey
from studio.models.saved_view import SavedView
from studio.models.start_template import StartTemplate
from studio.models.throttle import Throttle
from studio.models.token import Token
from studio.models.webhook import Webhook, WebhookDelivery

__all__ = [
    "Access",
    "IdempotencyKey",
    "SavedView",
    "StartTemplate",
    "Throttle",
    "Token",
    "Webhook",
    "WebhookDelivery",
]
