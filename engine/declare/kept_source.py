"""The part of a module that a handler needs, to be kept with the version of its code."""

from __future__ import annotations

import ast
import inspect
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from engine.declare.handler import source_from_def
from engine.values.identity import fingerprint
from engine.values.syntax import parse

LONGEST = 262_144  # bytes that are kept
LONGEST_FILE = 4_000_000  # characters that are read


@dataclass(frozen=True, slots=True)
class KeptSource:
    """A handler's module with only what the handler needs of it. Other lines are empty, so that numbers stay.

    `line` is that of its first decorator, or of `async def`. `text` is None if there is too much to keep.
    """

    function: str
    line: int
    text: str | None


def kept_source(handler: object, expected: str) -> KeptSource | None:
    """Read the source of a handler. Return None if there is no file, or if it no longer has this fingerprint."""
    code = inspect.unwrap(handler).__code__  # type: ignore[arg-type]
    try:
        with tokenize.open(code.co_filename) as stream:
            text = stream.read(LONGEST_FILE + 1)
        if len(text) > LONGEST_FILE:
            return KeptSource(code.co_name, code.co_firstlineno, None)
        if _fingerprint_at(text, code.co_firstlineno) != expected:
            return None  # the file was replaced after it was imported
        needed = _needed(text, code.co_firstlineno)
        is_short = len(needed.encode()) <= LONGEST
    except (OSError, SyntaxError, ValueError, IndexError, RecursionError):
        return None
    return KeptSource(code.co_name, code.co_firstlineno, needed if is_short else None)


def _fingerprint_at(text: str, line: int) -> str:
    """Return the fingerprint of the function whose first line this is, as its declaration computes it."""
    lines = [f"{one}\n" for one in text.split("\n")[line - 1 :]]
    return fingerprint(source_from_def("".join(inspect.getblock(lines))))


def _needed(text: str, line: int) -> str:
    """Return a module with only the statement at this line and those that it refers to, also by others."""
    body = parse(text).body
    binders: dict[str, list[ast.stmt]] = {}
    for statement in body:
        for name in _bound(statement):
            binders.setdefault(name, []).append(statement)
    left = [one for one in body if _first(one) <= line <= _last(one)] + binders.get("*", [])
    found: dict[int, ast.stmt] = {}
    while left:
        one = left.pop()
        if id(one) not in found:
            found[id(one)] = one
            left += [other for name in _used(one) for other in binders.get(name, ())]
    kept = {number for one in found.values() for number in range(_first(one), _last(one) + 1)}
    lines = text.split("\n")[: max(kept)]
    return "\n".join(said if number in kept else "" for number, said in enumerate(lines, 1))


def _bound(statement: ast.stmt) -> Iterator[str]:
    for node in _outside_functions(statement):
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((one.asname or one.name).partition(".")[0] for one in names)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name


def _outside_functions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that may bind names of the module, also those inside `if` and `try`."""
    left: list[ast.AST] = [statement]
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            left += ast.iter_child_nodes(node)


def _used(statement: ast.stmt) -> Iterator[str]:
    return (one.id for one in ast.walk(statement) if isinstance(one, ast.Name))


def _first(node: ast.stmt) -> int:
    lines: list[int] = [one.lineno for one in getattr(node, "decorator_list", [])]
    return min([*lines, node.lineno])


def _last(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno
