"""Fixtures for pytest. Django and the engine are imported only when a fixture is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from engine.declare.registry import Workflow
    from engine.models import Instance
    from engine.testing import WorkflowTest

    MakeTest = Callable[..., WorkflowTest]


@pytest.fixture
def workflows_test(db: None) -> Iterator[MakeTest]:
    """Make tests of workflows: `test = workflows_test(ship_order)`, with the arguments of `workflow_test`.

    What they prepared and did not use is an error at the end of the test.
    """
    # `db` is an argument, because pytest-django makes a test database only if the arguments ask for one. Beside
    # `transactional_db` it does nothing.
    with made_tests() as make:
        yield make


@pytest.fixture
def run_workflow(workflows_test: MakeTest) -> Callable[..., Instance]:
    """Run an instance to its end, with nothing prepared: `run_workflow(ship_order, Order(...))`."""

    def run(workflow: Workflow[Any, Any], *params: Any, **options: Any) -> Instance:
        return workflows_test(workflow).run_to_end(*params, **options)

    return run


@contextmanager
def made_tests() -> Iterator[MakeTest]:
    """Yield a function that makes tests, and end them with the block."""
    from engine.testing import workflow_test

    with ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(workflow_test(*args, **options))
