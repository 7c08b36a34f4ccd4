"""The names of steps as the source has them: in full, or as a pattern of what the code computes."""

from __future__ import annotations

import ast
import re

from engine.lints.code import Code
from engine.lints.names import Function
from engine.lints.operations import DECORATED, DurableCall, argument, text

GAP = "{…}"
LONGEST = 200
DEFINE = "define_step"

Parts = list[str | None]  # literal parts, and None for what the code computes


def kind_of(call: DurableCall) -> str:
    """Return the kind of the step that a call makes."""
    return "do" if call.method in ("run", DECORATED) else call.operation.kind or call.method


def name_of(call: DurableCall, code: Code) -> tuple[str, str]:
    """Return the name of the step that a call makes, and its pattern if that is not all of it."""
    if call.method == "run":
        return _defined(argument(call.node, 0, "defined_step"), code), ""
    said: ast.expr | None
    if call.method == "progress":
        said = argument(call.node, 0, "message")
    elif call.method == DECORATED:
        called = code.names.function(call.node.func)
        decoration = None if called is None else code.decoration(called)
        said = None if decoration is None else argument(decoration, 0, "name")
    else:
        said = call.name
    return _named([None] if said is None else _parts(said, code))


def _named(parts: Parts) -> tuple[str, str]:
    name = "".join(GAP if part is None else part for part in parts)[:LONGEST]
    if None not in parts:
        return name, ""
    return name, "".join(".*" if part is None else re.escape(part) for part in parts)


def _parts(said: ast.expr, code: Code) -> Parts:
    match said:
        case ast.Constant(value=str(value)):
            return [value]
        case ast.JoinedStr(values=values):
            return [text(part) for part in values]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_parts(left, code), *_parts(right, code)]
        case ast.Name():
            found = code.names.bindings(said)
            return [text(found[0].value) if len(found) == 1 else None]
    return [None]


def _defined(said: ast.expr | None, code: Code) -> str:
    """Return the name of a step that `@define_step` declares, as far as this module shows it."""
    match said:
        case ast.Call(func=ast.Attribute(value=value, attr="using")):
            return text(argument(said, 0, "name")) or _defined(value, code)
        case ast.Name(id=name):
            return _declared(code.names.function(said)) or name.replace("_", "-")
        case ast.Attribute(attr=name):
            return name.replace("_", "-")
    return GAP


def _declared(function: Function | None) -> str | None:
    """Return the name that the decorator of a function sets."""
    for decorator in getattr(function, "decorator_list", ()):
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).rpartition(".")[2] == DEFINE:
            return text(argument(decorator, 0, "name"))
    return None
