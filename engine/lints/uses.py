"""Find the workflows that a file of the project starts or looks up by name."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.lints.names import Binding, Names
from engine.lints.operations import argument, text
from engine.lints.rules.unknown_workflows import REGISTRY, named
from engine.lints.source import Source

CHILDREN = ("run_workflow", "spawn")


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
