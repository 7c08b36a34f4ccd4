"""The answers to probes, whether Django or the server in front of it gives them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from engine.status.health import Health

HEADERS = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    status: int
    body: bytes


def alive() -> ProbeAnswer:
    """Answer that this process answers. The database is not asked: restarting this process would not help it."""
    return _answer(200, {"status": "ok"})


def ready(found: Health, details: Health | None) -> ProbeAnswer:
    """Answer whether the database answers and is migrated. What workers do is in the details only."""
    if not found.is_ready:
        return _answer(503, {"status": "not ready", "reason": " ".join(found.problems)})
    return _answer(200, {"status": "ready", **({} if details is None else details.to_json())})


def _answer(status: int, document: dict[str, object]) -> ProbeAnswer:
    return ProbeAnswer(status, json.dumps(document, default=str).encode() + b"\n")
