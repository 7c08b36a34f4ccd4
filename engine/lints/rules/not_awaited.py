"""E109: a durable call between steps is never awaited."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.lints.code import Code
from engine.lints.finding import Found
from engine.lints.names import COMPREHENSIONS, Binding, own

# Attributes of futures, which durable calls return, and of coroutines.
OF_FUTURES = (
    "add_done_callback",
    "cancel",
    "cancelled",
    "done",
    "exception",
    "remove_done_callback",
    "result",
)
OF_COROUTINES = ("close", "send", "throw")
HINT = "Add `await`. To run it concurrently, pass it to `asyncio.gather` or a TaskGroup."


def find(code: Code) -> Iterator[Found]:
    # Not in bodies: a parent step waits for its children, awaited or not.
    for node in code.between():
        call = code.durable(node)
        if call is not None and _is_forgotten(code, call.node):
            message = (
                f"`{ast.unparse(call.node.func)[:60]}(…)` is not awaited: its result is lost, and it is cancelled when "
                "the handler ends."
            )
            yield Found("E109", node, message, HINT)
        elif call is None and _is_dropped_coroutine(code, node):
            yield Found("E109", node, f"`{_callee(node)}(…)` is not awaited: none of its steps run.", HINT)


def _is_forgotten(code: Code, call: ast.AST) -> bool:
    use = code.names.parents[call]
    while isinstance(use, COMPREHENSIONS) and call in (
        getattr(use, "elt", None),
        getattr(use, "value", None),
    ):
        call, use = use, code.names.parents[use]
    if isinstance(use, ast.Expr) or _is_as_value(code, call):
        return True
    target = _only_target(use)
    return target is not None and _is_never_awaited(code, target)


def _only_target(use: ast.AST) -> ast.Name | None:
    match use:
        case ast.Assign(targets=[ast.Name() as target]) | ast.AnnAssign(target=ast.Name() as target):
            return target
    return None


def _is_never_awaited(code: Code, target: ast.Name) -> bool:
    """Return whether a variable is only used as a value, or not at all. If it is passed on, it may be awaited there."""
    bound: list[Binding] = code.names.bindings(target)
    if len(bound) != 1:
        return False
    scope = code.names.scope_of(target)
    reads = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.id == target.id
        and code.names.bindings(node) is bound
    ]
    return all(_is_as_value(code, node) for node in reads)


def _is_as_value(code: Code, node: ast.AST) -> bool:
    """Return whether a coroutine is used as if it were its own result."""
    match code.names.parents[node]:
        case ast.Attribute(attr=attr):
            return attr not in (*OF_FUTURES, *OF_COROUTINES) and not attr.startswith(("cr_", "__"))
        case ast.Subscript(value=value):
            return value is node and not isinstance(node, COMPREHENSIONS)
        case ast.Compare() | ast.BinOp() | ast.UnaryOp() | ast.FormattedValue():
            return not isinstance(node, COMPREHENSIONS)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return test is node and not isinstance(node, COMPREHENSIONS)
        case ast.For(iter=iterated) | ast.comprehension(iter=iterated):
            return iterated is node and not isinstance(node, COMPREHENSIONS)
    return False


def _is_dropped_coroutine(code: Code, node: ast.AST) -> bool:
    """Return whether an `async def` of this module is called as a statement."""
    if not isinstance(node, ast.Call) or not isinstance(code.names.parents[node], ast.Expr):
        return False
    function = code.names.function(node.func)
    if not isinstance(function, ast.AsyncFunctionDef) or function.decorator_list:
        return False
    return not any(isinstance(one, ast.Yield) for one in own(function))


def _callee(node: ast.AST) -> str:
    return ast.unparse(node.func)[:60] if isinstance(node, ast.Call) else ""
