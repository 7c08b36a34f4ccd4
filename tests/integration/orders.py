"""A workflow with search paths, and what is indexed of its instances."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from engine import WorkflowStep, workflow, workflows
from engine.declare.registry import Workflow
from engine.models import Instance, SearchValue, Worker

# What a start writes, in another session.
PLANT = """
INSERT INTO engine_instance (workflow, id, status, params, wake_at)
VALUES ('order', 'planted', 'queued', json_build_object('customer', %s::text), clock_timestamp())
"""

Found = dict[str, tuple[str | None, Decimal | None]]


def declare(*search: str) -> Workflow[Any, Any]:
    @workflow("order", search=search)
    async def order(step: WorkflowStep, params: dict[str, Any]) -> Any:
        return params.get("returns")

    return order


def redeclare(*search: str) -> Workflow[Any, Any]:
    """Deploy code that declares other paths."""
    workflows._workflows.pop("order")
    return declare(*search)


def worker_of(name: str, *, seen_at: datetime) -> None:
    Worker.objects.create(
        role="cluster",
        name="host:7",
        worker_id=7,
        workflows=[name],
        slots=1,
        started_at=seen_at,
        seen_at=seen_at,
    )


def found(instance: Instance) -> Found:
    rows = SearchValue.objects.filter(instance=instance.key)
    return {row.path.path: (row.text, row.number) for row in rows.select_related("path")}
