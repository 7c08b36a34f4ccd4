"""W103: a handler calls two steps with the same name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.lints.code import Code
from engine.lints.finding import Found
from engine.lints.flow import may_follow
from engine.lints.names import Function
from engine.lints.operations import DurableCall, keyword, text

# The name of `listen` is the event type: a second wait for the same event must reuse it.
NAMED_BY_OTHERS = ("listen",)

Named = tuple[str, str, ast.expr, DurableCall]


def find(code: Code) -> Iterator[Found]:
    for frame in code.frames:
        earlier: list[Named] = []
        for one in _names(code, frame):
            twin = next((other for other in earlier if _is_repeated(code, other, one)), None)
            if twin is not None:
                yield _found(code, twin, one)
            earlier.append(one)


def _names(code: Code, frame: Function) -> Iterator[Named]:
    """Yield the literal step names of a frame, in source order."""
    for node in code.own(frame):
        call = code.durable(node) or _decorator(code, node)
        name = None if call is None else call.name
        if call is not None and call.method not in NAMED_BY_OTHERS and (said := text(name)) is not None:
            yield call.operation.kind, said, name, call  # type: ignore[misc]


def _decorator(code: Code, node: ast.AST) -> DurableCall | None:
    """Return the call of `@step.do("name")`, which names the function below it."""
    if isinstance(node, ast.Call) and (code.resolve(node.func) or "").endswith("step>.do"):
        return DurableCall(node, "do")
    return None


def _is_repeated(code: Code, first: Named, second: Named) -> bool:
    if first[:2] != second[:2] or _is_true(keyword(second[3].node, "once")):
        return False
    return may_follow(first[2], second[2], code.names.parents)


def _found(code: Code, first: Named, second: Named) -> Found:
    kind, name, node, _ = second
    line = first[2].lineno
    if code.facts.is_named_once:
        means = 'does not run: with `step_identity="name"` it returns the result of the first.'
    else:
        means = (
            "also runs, and only their order distinguishes the two. If changed code swaps them or removes one, a "
            "waiting instance gets the wrong result."
        )
    said = f'"{name}" is also the name of the {kind} step on line {line}. The second step {means}'
    hint = "Give each step its own name."
    if second[3].method == "wait_for_event" and keyword(second[3].node, "type") is None:
        hint += f' Pass the event type separately: step.wait_for_event("…", "{name}").'
    return Found("W103", node, said, hint)


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
