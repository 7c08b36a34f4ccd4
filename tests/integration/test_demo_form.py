"""What the Studio shows of the demo before anything is started."""

from __future__ import annotations

from importlib import import_module

import pytest

from engine import workflows
from engine.steer.launch import validate_params
from studio.forms.schema import example, fields


@pytest.mark.parametrize("name", ["database-backup", "order", "refund", "rolling-release"])
def test_example_in_the_form_can_be_started_as_it_is(name: str) -> None:
    import_module("studio.demo.workflows")
    workflow = workflows[name]

    validate_params(workflow, example(workflow.params_schema()))

    assert workflow.description
    assert [field.name for field in fields(workflow.params_schema()) if not field.description] == []
