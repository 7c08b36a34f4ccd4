"""The Studio's own tables: permissions, limits, tokens, what the HTTP API has answered, and webhooks."""

from studio.models.access import Access
from studio.models.idempotency import IdempotencyKey
from studio.models.throttle import Throttle
from studio.models.token import Token
from studio.models.webhook import Webhook, WebhookDelivery

__all__ = ["Access", "IdempotencyKey", "Throttle", "Token", "Webhook", "WebhookDelivery"]
