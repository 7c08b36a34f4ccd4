"""Two tiers of tests: `make test` runs the first, `make test-all` both.

The first is what a contributor needs after every change. What takes long, kills processes in loops, or tests the tests
is in the second. The folders below belong to the first tier; a module or a test in them may say otherwise. Modules in
every other folder (`process`, `deploy`, `browser`, …) say which they are in:

    pytestmark = [pytest.mark.process, pytest.mark.second_tier]
"""

from __future__ import annotations

from collections.abc import Iterable
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


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    return ModuleOfTier.from_parent(parent, path=module_path)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if wanted := config.option.tier:
        config.hook.pytest_deselected(items=[item for item in items if tier_of(item) != f"{wanted}_tier"])
        items[:] = [item for item in items if tier_of(item) == f"{wanted}_tier"]


class ModuleOfTier(pytest.Module):
    """A module whose tests are collected only if their tier is named."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        assert self.obj, "imported: its marks are known"
        if tier_of(self) is None:
            raise self.CollectError(
                f"{self.nodeid} names no tier. Mark it with pytest.mark.{FIRST} or pytest.mark.{SECOND}: "
                f"pytestmark = [...]. tests/tiers.py says which is which."
            )
        return super().collect()


def tier_of(node: pytest.Item | pytest.Collector) -> str | None:
    """Return the tier that a test is marked with, or else its class, its module or its folder."""
    marked = next((mark.name for mark in node.iter_markers() if mark.name in (FIRST, SECOND)), None)
    is_of_first = node.path.relative_to(TESTS).parts[0] in FOLDERS_OF_FIRST
    return marked or (FIRST if is_of_first else None)
