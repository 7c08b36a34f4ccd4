"""Find the workflows that the project's own files start or look up by name: those of its apps, not of libraries."""

from __future__ import annotations

import ast
import functools
import re
import site
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.apps import AppConfig, apps

from engine.configuration import usable
from engine.lints.finding import Finding, Found, Severity
from engine.lints.names import Binding, Names
from engine.lints.operations import argument, text
from engine.lints.rules.unknown_workflows import REGISTRY, named, unknown
from engine.lints.source import Source
from engine.values.files import top_package

CHILDREN = ("run_workflow", "spawn")

SKIPPED = {"__pycache__", "migrations", "node_modules", "static"}
TESTS = re.compile(r"(^|/)(tests?/|test_[^/]*\.py$|conftest\.py$)")

UNSTARTED = (
    "Nothing in the project starts this workflow, and it has no schedule: it runs only if a person starts it."
)
START_IT = (
    "Call its `start()`, or add a schedule with `@workflow(schedules=[…])`. If people start it, end the line of its "
    "decorator with `# reprise: allow I102 because people start it`."
)


def uses(workflow_file: str) -> Iterator[Uses]:
    """Yield the uses in the project's files, starting with the workflow's own package."""
    own = top_package(Path(workflow_file))
    for package in dict.fromkeys([own, *packages()]):
        for file in files(package):
            yield uses_of(str(file))


def packages() -> list[Path]:
    """Return the top packages of apps and of REPRISE["MODULES"], except those in which people choose what to start."""
    found = {top_package(Path(app.path)): None for app in apps.get_app_configs()}
    found |= {top_package(Path(file)): None for file in _files_of_modules()}
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


def _files_of_modules() -> Iterator[str]:
    for name in usable("MODULES"):
        module = sys.modules.get(name)
        if module is not None and module.__file__ is not None:
            yield module.__file__


def _is_for_people(app: AppConfig) -> bool:
    """Return whether an app starts any workflow that people choose, so that it says nothing about a single one."""
    return app.name == "engine" or bool(getattr(app, "starts_for_people", False))


@functools.cache
def _libraries() -> list[Path]:
    places = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    return [Path(place) for place in [*places, *site.getsitepackages(), site.getusersitepackages()]]


def find_unstarted(
    workflow: str, file: str, handler: ast.AsyncFunctionDef, project: Iterable[Uses]
) -> Iterator[Found]:
    """I102: nothing in the project starts a workflow, and it has no schedule.

    Yields one finding at most, and none if the project looks up workflows by names computed at run time.
    """
    if not any(_names(one, workflow, file, handler.name) for one in project):
        yield Found("I102", handler, UNSTARTED, START_IT)


def _names(uses: Uses, workflow: str, file: str, function: str) -> bool:
    if uses.is_dynamic or function in uses.identifiers or workflow in uses.looked_up:
        return True
    # In its own file the name also occurs in the declaration of the workflow.
    return uses.file != file and workflow in uses.texts


@dataclass(frozen=True, slots=True)
class Uses:
    """The names that one file uses. `is_dynamic`: it looks up workflows by names computed at run time."""

    file: str
    identifiers: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    lookups: tuple[ast.expr, ...] = ()
    is_dynamic: bool = False

    @property
    def looked_up(self) -> set[str]:
        return {name for node in self.lookups if (name := text(node)) is not None}


def uses_of(file: str) -> Uses:
    """Return the uses in a file, or none if it cannot be read."""
    try:
        stat = Path(file).stat()
        return _read(file, stat.st_mtime_ns, stat.st_size)
    except OSError:
        return Uses(file)


@functools.lru_cache(maxsize=20_000)
def _read(file: str, changed_ns: int, size: int) -> Uses:
    source = Source.of(file)
    return Uses(file) if source is None else _uses(source)


def _uses(source: Source) -> Uses:
    names = source.names
    lookups, is_dynamic = [], False
    for node in ast.walk(source.tree):
        for name in _lookups(node, names):
            if text(name) is not None:
                lookups.append(name)
            elif _is_dynamic(name, names):
                is_dynamic = True
        is_dynamic = is_dynamic or _takes_all(node, names)
    return Uses(
        source.file, frozenset(_identifiers(source)), frozenset(_texts(source)), tuple(lookups), is_dynamic
    )


def _lookups(node: ast.AST, names: Names) -> Iterator[ast.expr]:
    """Yield the expressions that refer to a workflow."""
    yield from (name for name in named(node, names.resolve) if name is not None)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHILDREN:
        name = argument(node, 1, "workflow")
        if name is not None:
            yield name


def _is_dynamic(name: ast.expr, names: Names) -> bool:
    """Return whether an expression may mean any workflow: neither a string nor a definition or import of the module."""
    while isinstance(name, ast.Attribute):
        name = name.value
    if not isinstance(name, ast.Name):
        return True
    return any(not _is_of_module(one) for one in names.bindings(name))


def _is_of_module(binding: Binding) -> bool:
    return isinstance(binding.node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef)


def _takes_all(node: ast.AST, names: Names) -> bool:
    """Return whether the whole registry is used, as in `for name in workflows` and `workflows.values()`."""
    if not isinstance(node, ast.Name | ast.Attribute) or names.resolve(node) not in REGISTRY:
        return False
    match names.parents.get(node):
        case ast.Subscript(value=value) if value is node:
            return False
        case ast.Attribute(attr=attr):
            return attr in ("values", "items", "keys")
    return isinstance(getattr(node, "ctx", None), ast.Load)


def _identifiers(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                yield name
            case ast.ImportFrom(names=aliases):  # imported under another name
                yield from (one.name for one in aliases if one.asname not in (None, one.name))


def _texts(source: Source) -> Iterator[str]:
    exported = {
        inner
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assign) and any(getattr(one, "id", "") == "__all__" for one in node.targets)
        for inner in ast.walk(node)
    }
    for node in ast.walk(source.tree):
        said = text(node)
        if said is not None and node not in exported and len(said) <= 64:
            yield said
