"""Runs of pytest that share the tests leave none out, and do none twice."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.sharing import TESTS, _Failures, failures, take, taken

FILES = ["unit/test_a.py", "model/test_b.py", "process/test_c.py", "process/test_d.py", "browser/test_e.py"]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    path = tmp_path / "taken"
    path.touch()
    return path


def run(shared: Path, *, from_the_end: bool) -> Any:
    """A run that has collected two tests of each file, all first ones first."""
    items = [SimpleNamespace(path=TESTS / name, name=f"{name} {turn}") for turn in range(2) for name in FILES]
    option = SimpleNamespace(shared=shared, from_the_end=from_the_end)
    return SimpleNamespace(items=items, config=SimpleNamespace(option=option))


def test_parts_are_taken_from_both_ends(shared: Path) -> None:
    parts = ["unit", "a", "b", "c", "browser"]
    ends = [False, True, True, False, True, False, True]
    assert [take(shared, parts, from_the_end=end) for end in ends] == [
        *("unit", "browser", "c", "a", "b"),
        *(None, None),
    ]


def test_parts_that_many_want_are_taken_by_one(shared: Path) -> None:
    parts = [f"part {number}" for number in range(100)]

    def take_all(number: int) -> list[str | None]:
        return list(iter(lambda: take(shared, parts, from_the_end=number % 2 == 0), None))

    with ThreadPoolExecutor(4) as pool:
        assert Counter(chain(*pool.map(take_all, range(4)))) == dict.fromkeys(parts, 1)


def test_each_test_is_done_in_one_of_the_runs(shared: Path) -> None:
    runs = [taken(run(shared, from_the_end=end)) for end in (False, True, True)]
    done = [item.name for turn in zip_longest(*runs) for item in turn if item]
    assert Counter(done) == {f"{name} {turn}": 1 for name in FILES for turn in range(2)}


def test_failures_of_all_runs_are_noted_once(shared: Path) -> None:
    assert failures(shared) == []
    reports = [
        SimpleNamespace(failed=failed, nodeid=f"test_a.py::test_{name}")
        for name, failed in (("x[a\nb]", True), ("y", False), ("z", True), ("z", True))
    ]
    for report in reports:
        _Failures(shared).pytest_runtest_logreport(report)  # type: ignore[arg-type]
    assert failures(shared) == ["test_a.py::test_x[a\nb]", "test_a.py::test_z"]
