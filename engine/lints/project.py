"""Find the files of the project that may start workflows: those of its apps, not of libraries."""

from __future__ import annotations

import functools
import re
import site
import sysconfig
from collections.abc import Collection, Iterator
from pathlib import Path

from django.apps import AppConfig, apps

from engine.lints.finding import Finding, Severity, top_package
from engine.lints.rules.unknown_workflows import unknown
from engine.lints.source import Source
from engine.lints.uses import Uses, uses_of

SKIPPED = {"__pycache__", "migrations", "node_modules", "static"}
TESTS = re.compile(r"(^|/)(tests?/|test_[^/]*\.py$|conftest\.py$)")


def uses(workflow_file: str) -> Iterator[Uses]:
    """Yield the uses in the project's files, starting with the workflow's own package."""
    own = top_package(Path(workflow_file))
    for package in dict.fromkeys([own, *packages()]):
        for file in files(package):
            yield uses_of(str(file))


def packages() -> list[Path]:
    """Return the top packages of the apps, except those in which people choose what to start."""
    found = {top_package(Path(app.path)): None for app in apps.get_app_configs()}
    left_out = {top_package(Path(app.path)) for app in apps.get_app_configs() if _is_for_people(app)}
    return [
        package
        for package in found
        if package not in left_out and not any(package.is_relative_to(one) for one in _libraries())
    ]


def files(package: Path) -> list[Path]:
    """Return the modules of a package, and those next to it, such as scripts."""
    if package.is_file():
        return [package]
    inside = [file for file in package.rglob("*.py") if not SKIPPED & set(file.relative_to(package).parts)]
    return sorted([*inside, *package.parent.glob("*.py")])


def unknown_lookups(known: Collection[str]) -> Iterator[Finding]:
    """Find lookups of workflows that are not declared. Tests are skipped: they may do this on purpose."""
    for package in packages():
        for file in files(package):
            if not TESTS.search(file.relative_to(package.parent).as_posix()):
                yield from _unknown(uses_of(str(file)), known)


def _unknown(uses: Uses, known: Collection[str]) -> Iterator[Finding]:
    for node in uses.lookups:
        found = unknown(node, known)
        source = Source.of(uses.file)
        if found and source and not source.allows(found.id, node):
            place = (uses.file, node.lineno, node.col_offset + 1)
            yield Finding("engine.E101", Severity.ERROR, "", *place, found.message, found.hint)


def _is_for_people(app: AppConfig) -> bool:
    """Return whether an app starts any workflow that people choose, so that it says nothing about a single one."""
    return app.name == "engine" or bool(getattr(app, "starts_for_people", False))


@functools.cache
def _libraries() -> list[Path]:
    places = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    return [Path(place) for place in [*places, *site.getsitepackages(), site.getusersitepackages()]]
