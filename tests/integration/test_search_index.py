"""The index of search paths: written with every start and every end, filled for earlier instances, and emptied."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from engine import WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.models import Instance, SearchValue
from engine.steer.indexing import paths

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_registry")]

Found = dict[str, tuple[str | None, Decimal | None]]


def declare(*search: str) -> Workflow[Any, Any]:
    @workflow("order", search=search)
    async def order(step: WorkflowStep, params: dict[str, Any]) -> Any:
        return params.get("returns")

    return order


def found(instance: Instance) -> Found:
    rows = SearchValue.objects.filter(instance=instance.key)
    return {row.path.path: (row.text, row.number) for row in rows.select_related("path")}


def test_each_kind_of_value_is_found_by_its_text_and_numbers_by_their_value() -> None:
    names = [
        "text",
        "int",
        "float",
        "small",
        "true",
        "null",
        "object",
        "array",
        "missing",
        "items.1.sku",
        "long",
    ]
    order = declare(*names)
    paths.register()
    instance = order.start(
        {
            "text": "Größe \u0001 🎈 \\u0000",
            "int": 2**63 - 1,
            "float": 1e16,
            "small": -5e-324,
            "true": True,
            "null": None,
            "object": {},
            "array": [1],
            "items": [{"sku": "a"}, {"sku": "b"}],
            "long": "x" * 1000,
        }
    )
    assert found(instance) == {
        "params.text": ("Größe \u0001 🎈 \\u0000", None),
        "params.int": ("9223372036854775807", Decimal(2**63 - 1)),
        "params.float": ("1e+16", Decimal(10**16)),
        "params.small": ("-5e-324", Decimal("-5e-324")),
        "params.true": ("true", None),
        "params.null": ("null", None),
        "params.object": (None, None),
        "params.array": (None, None),
        "params.items.1.sku": ("b", None),
        "params.long": ("x" * 256, None),
    }
