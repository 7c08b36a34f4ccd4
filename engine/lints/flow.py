"""Decide whether one call can follow another in the same run of a function."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping

from engine.lints.operations import ENDINGS

Parents = Mapping[ast.AST, ast.AST]
LOOPS = (ast.For, ast.AsyncFor, ast.While)
TRIES = (ast.Try, ast.TryStar)


def may_follow(first: ast.AST, second: ast.AST, parents: Parents) -> bool:
    """Return whether `second`, which is below `first`, can run after it.

    The two arms of an `if` exclude each other, and code below a `return` is unreachable. Further iterations of a loop
    do not count.
    """
    ahead, behind = _path(first, parents), _path(second, parents)
    common = next(node for node in ahead if node in behind)
    mine, other = ahead[ahead.index(common) - 1], behind[behind.index(common) - 1]
    if _is_either_or(common, mine, other) or _contradict(ahead, behind, parents):
        return False
    if isinstance(common, TRIES) and mine in common.body and other not in common.orelse:
        return True  # an exception on the way leads there
    return not _never_comes_past(first, common, parents)


def ends(statement: ast.stmt) -> type[ast.stmt] | None:
    """Return how control leaves at a statement: Return, Raise, Break or Continue. Return None if it may continue."""
    match statement:
        case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
            return type(statement)
        case ast.Expr(value=ast.Await(value=ast.Call(func=ast.Attribute(attr=method)))) if method in ENDINGS:
            return ast.Return
        case ast.If(body=body, orelse=orelse):
            return _all([body, orelse])
        case ast.With(body=body) | ast.AsyncWith(body=body):
            return _of(body)
        case ast.Try() | ast.TryStar():
            arms = [[*statement.body, *statement.orelse], *(one.body for one in statement.handlers)]
            return _of(statement.finalbody) or _all(arms)
        case ast.Match(cases=cases) if _is_wildcard(cases[-1]):
            return _all([case.body for case in cases])
    return None


def _of(block: list[ast.stmt]) -> type[ast.stmt] | None:
    return next((how for statement in block if (how := ends(statement))), None)


def _all(blocks: list[list[ast.stmt]]) -> type[ast.stmt] | None:
    """Return how all blocks end, or None if one does not. Of several ways return the one that leaves the least."""
    hows = [_of(block) for block in blocks]
    if None in hows:
        return None
    return min(hows, key=(ast.Continue, ast.Break, ast.Raise, ast.Return).index)


def _is_wildcard(case: ast.match_case) -> bool:
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None


def _path(node: ast.AST, parents: Parents) -> list[ast.AST]:
    """Return the node and all its ancestors."""
    path = [node]
    while node in parents:
        node = parents[node]
        path.append(node)
    return path


def _is_either_or(common: ast.AST, mine: ast.AST, other: ast.AST) -> bool:
    match common:
        case ast.Match():
            return isinstance(mine, ast.match_case) and isinstance(other, ast.match_case)
        case ast.Try() | ast.TryStar():
            apart: list[ast.AST] = [*common.handlers, *common.orelse]
            return mine in apart and other in apart and not (mine in common.orelse and other in common.orelse)
    return False


def _contradict(ahead: list[ast.AST], behind: list[ast.AST], parents: Parents) -> bool:
    """Return whether one is inside `if x` and the other inside its `else`, or inside another `if not x`."""
    tests = _conditions(ahead)
    return any((test, not holds) in tests for test, holds in _conditions(behind))


def _conditions(path: list[ast.AST]) -> set[tuple[str, bool]]:
    found = set()
    for inner, outer in itertools.pairwise(path):
        if isinstance(outer, ast.If | ast.IfExp) and inner is not outer.test:
            body = outer.body if isinstance(outer.body, list) else [outer.body]
            found.add(_condition(outer.test, holds=inner in body))
    return found


def _condition(test: ast.expr, *, holds: bool) -> tuple[str, bool]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _condition(test.operand, holds=not holds)
    return ast.dump(test), holds


def _never_comes_past(node: ast.AST, end: ast.AST, parents: Parents) -> bool:
    """Return whether control, once at `node`, leaves `end` before the code below it."""
    left: type[ast.stmt] | None = None
    while (parent := parents[node]) is not end:
        left = left or _way_out(node, parent)
        if left is not None and _catches(parent, node, left):
            left = None
        node = parent
    return left is not None or isinstance(node, ast.Return | ast.Raise)


def _way_out(node: ast.AST, parent: ast.AST) -> type[ast.stmt] | None:
    """Return how control leaves at a statement, or at a later one in the same block."""
    if isinstance(node, ast.Return | ast.Raise):
        return type(node)
    for _, block in ast.iter_fields(parent):
        if isinstance(block, list) and isinstance(node, ast.stmt) and node in block:
            return _of(block[block.index(node) + 1 :])
    return None


def _catches(parent: ast.AST, node: ast.AST, left: type[ast.stmt]) -> bool:
    """Return whether control continues below `parent` although it has left its content."""
    if isinstance(parent, LOOPS):
        return left in (ast.Break, ast.Continue)
    if isinstance(parent, TRIES) and node in parent.body:
        # The call itself may raise an error that is caught here.
        return any(_of(handler.body) is None for handler in parent.handlers)
    return False
