"""E101: a reference to a workflow that is not declared."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Collection, Iterator

from engine.lints.code import Code
from engine.lints.finding import Found
from engine.lints.operations import argument, keyword, text

BRANCH = ("engine.branch", "engine.declare.children.branch")
REGISTRY = ("engine.workflows", "engine.declare.registry.workflows")


def find(code: Code) -> Iterator[Found]:
    for node in code.everywhere():
        for name in named(node, code.resolve):
            if found := unknown(name, code.facts.known):
                yield found
        if call := code.durable(node):
            at = call.operation.workflow
            name = keyword(call.node, "workflow") if at is None else argument(call.node, at, "workflow")
            if found := unknown(name, code.facts.known):
                yield found


def named(node: ast.AST, resolve: Callable[[ast.AST], str | None]) -> Iterator[ast.expr | None]:
    """Yield the expressions that name a workflow in `branch(…)`, `workflows[…]` and `workflows.get(…)`."""
    if isinstance(node, ast.Subscript) and resolve(node.value) in REGISTRY:
        yield node.slice
    elif isinstance(node, ast.Call):
        called = resolve(node.func) or ""
        if called in BRANCH:
            yield argument(node, 0, "workflow")
            yield keyword(node, "compensate_with")
        elif called.rpartition(".")[0] in REGISTRY and called.endswith(".get") and len(node.args) == 1:
            yield node.args[0]


def unknown(node: ast.AST | None, known: Collection[str]) -> Found | None:
    name = text(node)
    if node is None or name is None or name in known:
        return None
    near = difflib.get_close_matches(name, known, n=1)
    hint = (
        f'Did you mean "{near[0]}"?'
        if near
        else "Name a workflow declared in the `workflows.py` of an installed app."
    )
    return Found("E101", node, f'No workflow is called "{name}": this raises `UnknownWorkflowError`.', hint)
