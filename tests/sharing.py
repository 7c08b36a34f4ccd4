"""Runs of pytest side by side that share the tests: each takes the next files that no other one has taken.

`-p tests.sharing --shared FILE` makes a run one of them; FILE is empty in the beginning. One run takes files in their
order, cheap ones first, and is the one to look at. The others have `--from-the-end`: what takes long is begun early,
so that all are done at about the same time.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

# Taken as a whole: its files share a browser and a stack.
WHOLE = ("browser",)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shared", type=Path, required=True)
    parser.addoption("--from-the-end", action="store_true")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Failures(config.option.shared), "failures")


class _Failures:
    """Notes what fails, where all runs and whoever started them can see it."""

    def __init__(self, shared: Path) -> None:
        self._path = _failed(shared)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self._path.open("a") as file:
                file.write(json.dumps(report.nodeid) + "\n")


def failures(shared: Path) -> list[str]:
    """Return the ids of the tests that failed in any of the runs, each once."""
    path = _failed(shared)
    lines = path.read_text().splitlines() if path.exists() else []
    return list(dict.fromkeys(json.loads(line) for line in lines))


def _failed(shared: Path) -> Path:
    return shared.with_name("failed")


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Do what pytest does with its list of tests, with one that is not known in advance."""
    if session.config.option.collectonly or session.testsfailed:
        return None
    for item, following in pairwise(chain(taken(session), [None])):
        assert item is not None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
    return True


def taken(session: pytest.Session) -> Iterator[pytest.Item]:
    """Give the tests of one part after the other, each when nobody has taken it until then."""
    parts: dict[str, list[pytest.Item]] = {}
    for item in session.items:
        parts.setdefault(_part(item.path), []).append(item)
    options = session.config.option
    while (name := take(options.shared, list(parts), from_the_end=options.from_the_end)) is not None:
        yield from parts[name]


def _part(path: Path) -> str:
    folder = path.relative_to(TESTS).parts[0]
    return folder if folder in WHOLE else str(path)


def take(shared: Path, parts: list[str], *, from_the_end: bool) -> str | None:
    """Choose one that nobody has taken; None when there is none left."""
    with shared.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        taken = json.loads(file.read() or "[]")
        left = [name for name in parts if name not in taken]
        if not left:
            return None
        chosen = left[-1 if from_the_end else 0]
        file.seek(0)
        json.dump([*taken, chosen], file)
        return chosen
