"""Rows as tests need them, written directly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from engine.models import Attempt, Event, Instance, Step

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def row_of(**values: Any) -> Instance:
    """Write an instance: queued and due by default."""
    given = {"workflow": "tick", "id": "one", "params": {}, "wake_at": timezone.now(), **values}
    return Instance.objects.create(**given)


def leased(instance: Instance, *, status: str = "running", worker_id: int = 7) -> Instance:
    """Let a worker hold the instance."""
    lease = timezone.now() + timedelta(seconds=30)
    Instance.objects.filter(key=instance.key).update(
        status=status, waiting_for="", owner=worker_id, wake_at=lease
    )
    return instance.refresh()


def step_of(instance: Instance, seq: int = 1, **values: Any) -> Step:
    given = {
        "generation": 1,
        "kind": "do",
        "name": f"s{seq}",
        "count": 1,
        "status": "running",
        "started_at": NOW,
    }
    return Step.objects.create(instance=instance, seq=seq, **{**given, **values})


def attempt_of(instance: Instance, seq: int = 1, **values: Any) -> Attempt:
    given = {"generation": 1, "number": 1, "status": "running", "started_at": NOW}
    return Attempt.objects.create(instance=instance, step_seq=seq, **{**given, **values})


def event_of(instance: Instance, **values: Any) -> Event:
    return Event.objects.create(
        instance=instance, **{"type": "e", "payload": {}, "received_at": NOW, **values}
    )
