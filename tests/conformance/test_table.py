"""The table in README.md says what the tests say."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROW = re.compile(r"\| ((?:CF|LC|KC|HC|CC)-\d+) \| ([a-z ]+) \| (.+) \|")
ROWS = [
    match.groups() for match in map(ROW.fullmatch, (HERE / "README.md").read_text().splitlines()) if match
]
TESTED = [(case, note) for case, state, note in ROWS if state in ("passed", "ours differs")]


@pytest.fixture(autouse=True)
def _story() -> None:
    """No workflow, no database."""


@pytest.fixture(scope="module", autouse=True)
def _statuses() -> None:
    """Nor any rows to guard."""


@pytest.fixture(autouse=True)
def _profile() -> None:
    """Nor a worker: once is enough."""


def named(path: Path) -> set[str]:
    """Return the cases that a file's tests name in their docstrings."""
    nodes = ast.walk(ast.parse(path.read_text()))
    tests = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    said = " ".join(ast.get_docstring(test) or "" for test in tests if test.name.startswith("test_"))
    return set(re.findall(r"\b(?:CF|LC|KC|HC|CC)-\d+\b", said))


def test_every_case_has_one_row_with_a_state_and_a_note() -> None:
    assert len(ROWS) == 149
    assert len({case for case, _, _ in ROWS}) == len(ROWS)
    assert {state for _, state, _ in ROWS} <= {"passed", "ours differs", "not yet", "not applicable"}


@pytest.mark.parametrize(("case", "note"), TESTED, ids=[case for case, _ in TESTED])
def test_a_tested_case_is_named_where_the_table_says(case: str, note: str) -> None:
    files = re.findall(r"(?:tests/(?:\w+/)+)?test_\w+\.py", note)
    assert files
    for file in files:
        path = HERE.parents[1] / file if "/" in file else HERE / file
        assert path.exists()
        assert case in named(path), f"no test of {file} names {case}"


def test_no_case_is_tested_that_the_table_does_not_say() -> None:
    said = {case for case, _ in TESTED}
    assert set().union(*map(named, set(HERE.glob("test_*.py")) - {Path(__file__)})) <= said
