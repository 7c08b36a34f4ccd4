"""What the tables say of some instances, without what differs from one run to the next."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from engine.models import Attempt, Audit, Event, Instance, Step

KEYS = {"key", "instance_id", "instance_key"}


def snapshot(prefix: str) -> list[dict[str, Any]]:
    """Describe all there is of the instances whose ids begin so; two equal ones tell that nothing more happened."""
    instances = Instance.objects.filter(id__startswith=prefix).order_by("id")
    keys = list(instances.values_list("key", flat=True))
    rows = [*instances.values()]
    for model in (Step, Attempt, Event):
        rows += model.objects.filter(instance_id__in=keys).order_by("pk").values()
    rows += Audit.objects.filter(instance_key__in=keys).order_by("key").values()
    return [_plain(row, prefix) for row in rows]


def _plain(row: dict[str, Any], prefix: str) -> dict[str, Any]:
    kept = {name: _value(value) for name, value in row.items() if name not in KEYS}
    return kept | ({"id": row["id"].removeprefix(prefix)} if "workflow" in row and "id" in row else {})


def _value(value: Any) -> Any:
    return "a moment" if isinstance(value, datetime) else value
