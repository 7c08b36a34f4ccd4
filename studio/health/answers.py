"""The answers to probes, whether Django or the server in front of it gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils import timezone

from engine.status import documents
from engine.status.documents import Document, as_json
from engine.status.health import Health
from studio.health.audience import Audience

HEADERS: Mapping[str, str] = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    status: int
    body: bytes
    headers: Mapping[str, str]


def alive() -> ProbeAnswer:
    """Answer that this process answers. The database is not asked: restarting this process would not help it."""
    return _answer(200, {"status": "ok"})


def unready(found: Health) -> ProbeAnswer:
    """Answer why pages cannot be served."""
    return _answer(503, {"status": "not ready", "reason": " ".join(found.problems)})


def ready(audience: Audience, details: Health | None) -> ProbeAnswer:
    """Answer that the database answers and is migrated. What workers do is in the details only."""
    more = {} if details is None else documents.health(details, timezone.now())
    return _answer(200, {"status": "ready", **more}, audience.headers)


def _answer(status: int, document: Document, headers: Mapping[str, str] | None = None) -> ProbeAnswer:
    return ProbeAnswer(
        status, as_json(document, indent=None).encode() + b"\n", {**HEADERS, **(headers or {})}
    )
