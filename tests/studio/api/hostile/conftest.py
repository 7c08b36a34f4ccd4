"""A workflow that takes anything, and what it has written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps

from engine import WorkflowStep, workflow
from tests.studio import factories
from tests.studio.api.hostile.values import INSTANCES

Rows = Callable[[], dict[str, int]]


@pytest.fixture(autouse=True)
def sink(own_registry: None) -> Any:
    """A workflow that takes anything."""

    @workflow
    async def sink(step: WorkflowStep, params: Any) -> None: ...

    return sink


@pytest.fixture
def rows(db: None) -> Callable[[], dict[str, int]]:
    """Count the rows of every table that a request could have written to."""
    models = [model for label in ("engine", "studio") for model in apps.get_app_config(label).get_models()]
    counted = [model for model in models if model._meta.managed and model.__name__ != "Throttle"]
    return lambda: {model._meta.label: model.objects.count() for model in counted}


@pytest.fixture
def asking(db: None) -> Callable[[], str]:
    """Make an instance that asks for anything; return the address at which it is answered."""

    def ask() -> str:
        found = factories.instance("waiting", workflow="sink", waiting_for="event")
        made = factories.request(found, schema={})
        return f"{INSTANCES}/{found.id}/requests/{made.seq}/answer"

    return ask


@pytest.fixture
def known(db: None) -> None:
    factories.instance(workflow="sink", id="one")
    factories.instance("complete", workflow="sink", id="done")
