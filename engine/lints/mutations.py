"""Find code that changes an object: `x.append(…)`, `x[k] = …`, `del x.a`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

MUTATORS = {
    "add",
    "append",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "setdefault",
    "sort",
    "update",
}


def mutations(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield the nodes that change an object, each with the expression of that object."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in MUTATORS:
                yield node, value
            case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[value, *_]):
                yield node, value
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                yield from ((node, one) for target in targets for one in _changed(target))
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                yield from ((node, one) for one in _changed(target))


def root(node: ast.AST) -> ast.Name | None:
    """Return the variable at the beginning of `x.a[0].b`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _changed(target: ast.AST) -> Iterator[ast.expr]:
    match target:
        case ast.Attribute(value=value) | ast.Subscript(value=value):
            yield value
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for element in elements:
                yield from _changed(element)
