"""The order of the tests: cheap ones first, as what they find, a browser test need not find.

The few that take a minute are exceptions, where several processes share the tests: one that began last would leave the
other processes idle, and its process keeps the test after it, too. Each process has its share of them in the first
half of its tests, so that they wait for programs while others compute. Mark one with `pytest.mark.long`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

ORDER = ("unit", "platform", "studio", "integration", "conformance", "process", "chaos", "browser")
Test = TypeVar("Test")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_place)
    if hasattr(config, "workerinput"):
        long = [item for item in items if item.get_closest_marker("long")]
        short = [item for item in items if not item.get_closest_marker("long")]
        items[:] = dealt(long, short, config.workerinput["workercount"])


def dealt(long: Sequence[Test], short: Sequence[Test], processes: int) -> list[Test]:
    """Return all tests, with the long ones evenly in the first half of what xdist deals to each process.

    `--dist worksteal` deals a part of the same size to each at first, in this order.
    """
    found: list[Test] = []
    left = [*short]
    for process in range(processes):
        own = [*long[process::processes]]
        size = max((len(long) + len(short) - len(found)) // (processes - process) - len(own), 0)
        found += _mixed(own, left[:size])
        del left[:size]
    return found + left


def _mixed(long: list[Test], short: list[Test]) -> list[Test]:
    gap = len(short) // 2 // max(len(long), 1)
    parts = [[one, *short[at * gap : (at + 1) * gap]] for at, one in enumerate(long)]
    return [*(test for part in parts for test in part), *short[len(long) * gap :]]


def _place(item: pytest.Item) -> int:
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    marks = [name for name in ("process", "browser") if item.get_closest_marker(name)]
    return max(ORDER.index(name if name in ORDER else "integration") for name in (folder, *marks))
