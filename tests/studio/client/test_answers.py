"""The client knows every operation and every key of the API's own document."""

from __future__ import annotations

import inspect
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from studio.api import (
    schemas,
    site,  # declares the operations
)
from studio.api.operation import DECLARED
from studio.client import Client, answers
from studio.client.call import Call, Pages
from tests.live import PROJECT

# Of the client → of the API.
SAME = {
    "Workflows": "WorkflowsAnswer",
    "WorkflowWithSchedules": "WorkflowAnswer",
    "SchedulesPage": "SchedulesAnswer",
    "BulkJobsPage": "BulkJobsAnswer",
    "BulkItemsPage": "BulkItemsAnswer",
    "ErrorGroupsPage": "ErrorGroupsAnswer",
    "Steered": "SteeredAnswer",
    "StartError": "StartErrorAnswer",
    "Batch": "BatchAnswer",
    "Sent": "SentAnswer",
    "Deleted": "DeletedInstance",
    "InstancesPage": "InstancesAnswer",
    "EventsPage": "EventsAnswer",
    "Health": "HealthAnswer",
    "Workers": "WorkersAnswer",
    "Drained": "DrainedAnswer",
}
OWN = ("NewInstance",)  # sent, not answered


def made_in(package: ModuleType) -> dict[str, type]:
    """Return the classes that the modules of a package make."""
    names = [f"{package.__name__}.{one.name}" for one in pkgutil.iter_modules(package.__path__)]
    return {
        name: made
        for module in names
        for name, made in vars(import_module(module)).items()
        if isinstance(made, type) and made.__module__ == module
    }


NAMES = sorted(made_in(answers).keys() - {*OWN})

VALUES = {"seq": 1, "what": "params", "type": "t", "answer": 1, "reason": "r", "items": []}


@pytest.mark.parametrize("name", NAMES)
def test_a_shape_has_the_keys_of_the_api(name: str) -> None:
    schema: Any = made_in(schemas)[SAME.get(name, name)]
    keys = {field.alias or key for key, field in schema.model_fields.items()}
    made = getattr(answers, name)
    assert made.__required_keys__ | made.__optional_keys__ == keys | _added(name)


def _added(name: str) -> set[str]:
    return {"etag"} if name == "Record" else set()


def test_there_is_a_method_for_each_operation() -> None:
    called = {(one.method, one.path) for one in _calls()}
    assert site.api
    missing = [
        (one.method, one.route)
        for one in DECLARED
        if not any(
            method == one.method and re.fullmatch(_pattern(one.route), path) for method, path in called
        )
    ]
    # The client names the instance in the address.
    assert missing == [("POST", "events")]


def _calls() -> list[Call[object]]:
    """Return a call of each operation."""
    made: list[Call[object]] = []
    for make in (one.__wrapped__ for one in vars(Client).values() if hasattr(one, "__wrapped__")):
        for more in ({"step": 1}, {"id": "i", "workflow": "w"}, {}):
            made += _made(make, more)
    return made


def _made(make: object, more: dict[str, object]) -> list[Call[object]]:
    parameters = inspect.signature(make).parameters  # type: ignore[arg-type]
    needed = {name: VALUES.get(name, "w") for name, one in parameters.items() if one.default is one.empty}
    given = needed | {name: value for name, value in more.items() if name in parameters}
    found = make(**given)  # type: ignore[operator]
    return [found.page(None) if isinstance(found, Pages) else found]


def _pattern(route: str) -> str:
    return "/" + re.sub(r"<[^>]+>", "[^/]+", route)


def test_the_client_needs_neither_django_nor_the_engine() -> None:
    """Only the package around it imports the engine, which imports nothing then."""
    program = (
        "import sys, studio.client\n"
        "heavy = ('django', 'pydantic', 'psycopg', 'ninja', 'channels', 'studio.api', 'engine.models')\n"
        "print([name for name in sys.modules if name.startswith(heavy)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(PROJECT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "[]\n"
