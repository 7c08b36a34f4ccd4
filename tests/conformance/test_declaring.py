"""Declaring workflows: a mistake is an error at once, which names the field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine import DeclarationError, WorkflowStep, workflow, workflows


async def handler(step: WorkflowStep) -> None:
    """Do nothing."""


def test_the_name_is_the_functions_unless_it_is_given() -> None:
    """LC-02"""

    @workflow
    async def order_pipeline(step: WorkflowStep) -> None:
        """Take an order."""

    @workflow(name="orders")
    async def other_pipeline(step: WorkflowStep) -> None: ...

    assert (order_pipeline.name, other_pipeline.name) == ("order-pipeline", "orders")
    assert order_pipeline.description == "Take an order."
    assert {"order-pipeline", "orders"} <= set(workflows)
    assert "other-pipeline" not in workflows


@pytest.mark.parametrize(
    ("declare", "field"),
    [
        (lambda: workflow(lambda step: None), "handler"),
        (lambda: workflow(name="")(handler), "name"),
        (lambda: workflow(name="a b")(handler), "name"),
        (lambda: workflow(name="x" * 65)(handler), "name"),
        (lambda: workflow(timeout="soon")(handler), "timeout"),
        (lambda: workflow(handler_timeout=0)(handler), "handler_timeout"),
        (lambda: workflow(max_steps=0)(handler), "max_steps"),
        (lambda: workflow(step_identity="maybe")(handler), "step_identity"),  # type: ignore[call-overload]
        (lambda: workflow(defaults={"limit": 3})(handler), "defaults"),
        (lambda: workflow(max_step=3)(handler), "max_step"),  # type: ignore[call-overload]
    ],
)
def test_a_wrong_declaration_is_a_type_error_that_names_the_field(
    declare: Callable[[], Any], field: str
) -> None:
    """LC-01"""
    with pytest.raises(TypeError) as caught:
        declare()
    assert isinstance(caught.value, DeclarationError)
    assert caught.value.field == field
    assert field in str(caught.value)
