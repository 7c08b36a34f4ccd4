"""The Studio's own tables: permissions, limits, tokens, what the HTTP API has answered, saved views, webhooks."""

from studio.models.access import Access
from studio.models.idempotency import IdempotencyKey
from studio.models.saved_view import SavedView
from studio.models.throttle import Throttle
from studio.models.token import Token
from studio.models.webhook import Webhook, WebhookDelivery

__all__ = ["Access", "IdempotencyKey", "SavedView", "Throttle", "Token", "Webhook", "WebhookDelivery"]
