"""W111: a large bare number as a duration, which may be meant as milliseconds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import timedelta

from engine.lints.code import Code
from engine.lints.finding import Found
from engine.lints.operations import DURATIONS, argument
from engine.values.durations import format_duration

LONG = 10_000
IN_DECORATORS = (*DURATIONS, "handler_timeout")


def find(code: Code) -> Iterator[Found]:
    seen: set[ast.AST] = set()
    for option, value in _durations(code):
        number = value.value if isinstance(value, ast.Constant) else None
        if value in seen or isinstance(number, bool) or not isinstance(number, int | float):
            continue
        seen.add(value)
        if LONG <= number < float("inf"):
            yield _found(option, value, number)


def _found(option: str, value: ast.expr, number: float) -> Found:
    length = _said(number)
    message = f"The {option} {ast.unparse(value)} is in seconds: {length}. Did you mean milliseconds?"
    hint = f'Specify the unit: "{number:g}s", or "{number:g}ms", which is {_said(number / 1000)}.'
    return Found("W111", value, message, hint)


def _said(seconds: float) -> str:
    try:
        return format_duration(timedelta(seconds=seconds))
    except OverflowError:
        return "over 365 days"


def _durations(code: Code) -> Iterator[tuple[str, ast.expr]]:
    """Yield the durations in calls and in the declarations of the workflow and its steps."""
    for node in code.everywhere():
        call = code.durable(node)
        if call is not None:
            at = call.operation.duration
            if at is not None and (value := argument(call.node, at, "duration")):
                yield "duration", value
            yield from _options(code, call.node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and _declares(code, decorator):
                    yield from _options(code, decorator)


def _declares(code: Code, decorator: ast.Call) -> bool:
    called = code.resolve(decorator.func) or ""
    return called.rpartition(".")[2] in ("workflow", "define_step") or called == "<step>.do"


def _options(code: Code, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    for one in call.keywords:
        if one.arg in IN_DECORATORS:
            yield one.arg, one.value
        elif one.arg in (None, "rollback_options", "defaults"):
            yield from _entries(code, one.value)


def _entries(code: Code, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the durations in a dict of options, written in place or assigned to a variable."""
    if isinstance(value, ast.Name):
        found = code.names.bindings(value)
        value = found[0].value if len(found) == 1 and found[0].value is not None else value
    if isinstance(value, ast.Dict):
        for key, entry in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in IN_DECORATORS:
                yield str(key.value), entry
