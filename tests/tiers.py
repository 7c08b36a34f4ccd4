"""Two tiers of tests: `make test` runs the first, `make test-all` both.

The first is what a contributor needs after every change. What takes long, kills processes in loops, or tests the tests
is in the second. The folders below belong to the first tier; a module or a test in them may say otherwise. Modules in
every other folder say which they are in:

    pytestmark = [pytest.mark.process, pytest.mark.second_tier]
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent

FIRST, SECOND = "first_tier", "second_tier"
FOLDERS_OF_FIRST = (
    *("conformance", "docs", "golden", "integration", "model"),
    *("platform", "studio", "testing", "unit"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=("first", "second"), help="run the tests of this tier only")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers = {item: tier_of(item) for item in items}
    if wanted := config.option.tier:
        chosen = [item for item in items if tiers[item] == f"{wanted}_tier"]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen


def tier_of(item: pytest.Item) -> str:
    """Return the tier that the test is marked with, or else its class, its module or its folder.

    Raise UsageError where none of them names one.
    """
    marked = next((mark.name for mark in item.iter_markers() if mark.name in (FIRST, SECOND)), None)
    path = item.path.relative_to(TESTS)
    if marked is None and path.parts[0] not in FOLDERS_OF_FIRST:
        raise pytest.UsageError(
            f"{TESTS.name}/{path} names no tier. Mark it with pytest.mark.{FIRST} or pytest.mark.{SECOND}; "
            "tests/tiers.py says which is which."
        )
    return marked or FIRST
