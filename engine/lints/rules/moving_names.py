"""E104: a step name is built from the time, a random number or a fresh ID."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.lints.code import Code
from engine.lints.finding import Found
from engine.lints.moving import SLEEP, moving


def find(code: Code) -> Iterator[Found]:
    for name in names(code):
        for source, what, twin in _sources(code, name):
            said = f"The step name is built from `{what}()`"
            where = "" if source is name else f" (line {source.lineno})"
            yield Found(
                "E104",
                name,
                f"{said}{where}: it differs on every replay, so the recorded step is never found and runs again.",
                f"Name the step after the data it works on, or use `{twin}`, which is the same on every replay.",
            )
            break


def names(code: Code) -> Iterator[ast.expr]:
    """Yield the expressions that name steps."""
    for node in code.between():
        call = code.durable(node)
        if call is not None and call.name is not None:
            yield call.name
        elif isinstance(node, ast.Call) and (code.resolve(node.func) or "") == "<step>.do" and node.args:
            yield node.args[0]


def _sources(code: Code, name: ast.expr) -> Iterator[tuple[ast.expr, str, str]]:
    """Yield the changing calls in a name, and in the values of the variables that it is built from."""
    for expression in [name, *_values(code, name)]:
        for _, what, twin in moving(code, expression):
            if twin != SLEEP:
                yield expression, what, twin


def _values(code: Code, name: ast.expr) -> Iterator[ast.expr]:
    for node in ast.walk(name):
        found = code.names.bindings(node) if isinstance(node, ast.Name) else []
        # For a called function only the call matters; a recorded result does not change.
        if len(found) == 1 and found[0].value is not None and not _is_recorded(code, found[0].value):
            yield found[0].value


def _is_recorded(code: Code, value: ast.expr) -> bool:
    return any(code.durable(node) for node in ast.walk(value))
