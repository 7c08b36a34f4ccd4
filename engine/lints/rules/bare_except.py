"""E110: an `except:` around durable calls catches everything."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.lints.code import Code
from engine.lints.finding import Found
from engine.lints.flow import TRIES
from engine.lints.names import FUNCTIONS, own
from engine.lints.operations import STEP

MESSAGE = (
    "{what} around durable calls also catches the end of an instance by terminate, `step.fail`, `step.abort` or "
    "`step.complete`. The instance still ends, but only after code that should not have run."
)
HINT = "Catch `StepError` or `Exception`, or end the block with a bare `raise`."


def find(code: Code) -> Iterator[Found]:
    for frame in code.frames:
        for node in code.own(frame):
            if isinstance(node, TRIES) and _is_durable(code, node.body):
                for handler in node.handlers:
                    if _catches_all(code, handler.type) and not _raises_again(handler):
                        what = "A bare `except:`" if handler.type is None else "`except BaseException`"
                        yield Found("E110", handler, MESSAGE.format(what=what), HINT)
            elif isinstance(node, ast.With | ast.AsyncWith) and _is_durable(code, node.body):
                yield from _suppressors(code, node)


def _suppressors(code: Code, node: ast.With | ast.AsyncWith) -> Iterator[Found]:
    for item in node.items:
        match item.context_expr:
            case ast.Call(func=func, args=args) if code.resolve(func) == "contextlib.suppress":
                if any(_catches_all(code, one) for one in args):
                    what = "`suppress(BaseException)`"
                    yield Found("E110", item.context_expr, MESSAGE.format(what=what), HINT)


def _catches_all(code: Code, kind: ast.expr | None) -> bool:
    if isinstance(kind, ast.Tuple):
        return any(_catches_all(code, one) for one in kind.elts)
    return kind is None or code.resolve(kind) in ("BaseException", "builtins.BaseException")


def _raises_again(handler: ast.ExceptHandler) -> bool:
    match handler.body[-1]:
        case ast.Raise(exc=None):
            return True
        case ast.Raise(exc=ast.Name(id=name)):
            return name == handler.name
    return False


def _is_durable(code: Code, block: list[ast.stmt]) -> bool:
    """Return whether the block makes a durable call, or passes `step` to a function."""
    for statement in block:
        for node in [] if isinstance(statement, FUNCTIONS) else own(statement):
            if code.durable(node):
                return True
            if isinstance(node, ast.Call) and any(code.resolve(one) == STEP for one in node.args):
                return True
    return False
