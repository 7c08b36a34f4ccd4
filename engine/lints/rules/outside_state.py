"""W107: the body of a step changes an outer list or dict that the handler reads later."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.lints.code import Body, Code
from engine.lints.finding import Found
from engine.lints.flow import LOOPS
from engine.lints.mutations import MUTATORS, mutations, root
from engine.lints.names import Binding

CONTAINERS = ("dict", "list", "set", "collections.Counter", "collections.defaultdict", "collections.deque")
DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def find(code: Code) -> Iterator[Found]:
    for body in code.bodies:
        for node, name in _changes(code, body):
            yield from _judge(code, body.call, node, name)
    for node in code.between():
        call = code.durable(node)
        match call.body if call else None:
            case ast.Attribute(value=ast.Name() as name, attr=attr) if attr in MUTATORS:
                yield from _judge(code, node, node, name)


def _changes(code: Code, body: Body) -> Iterator[tuple[ast.AST, ast.Name]]:
    """Yield the outer objects that the body changes, by their names in the caller."""
    nodes = list(ast.walk(body.function))
    inside = set(nodes)
    given: dict[ast.AST, ast.expr] = dict(body.given())
    for node, changed in mutations(nodes):
        name = root(changed)
        bound = code.names.bindings(name) if name is not None else []
        if name is None or not bound:
            continue
        if bound[0].node in given:
            name = root(given[bound[0].node])
            if name is not None and len(bound) == 1:
                yield node, name
        elif bound[0].node not in inside:
            yield node, name
    for node in nodes:
        match node:
            case ast.Name(ctx=ast.Store()):
                if any(bound.node not in inside for bound in code.names.bindings(node)):
                    yield node, node  # by `nonlocal` or `global`


def _judge(code: Code, call: ast.AST, node: ast.AST, name: ast.Name) -> Iterator[Found]:
    bound = code.names.bindings(name)
    if not (isinstance(node, ast.Name) or any(_is_container(code, one) for one in bound)):
        return
    line = _read_after(code, call, bound)
    if line is not None:
        message = (
            f"The body of a step changes `{name.id}`, and line {line} reads it between steps. A replay does not "
            "run the body of a finished step again: after a wait, or in another worker, the change is lost."
        )
        yield Found(
            "W107", node, message, "Return the value from the step, and use the result between steps."
        )


def _is_container(code: Code, binding: Binding) -> bool:
    value = binding.value
    if isinstance(value, ast.Call):
        return code.resolve(value.func) in CONTAINERS
    return isinstance(value, DISPLAYS)


def _read_after(code: Code, call: ast.AST, bound: list[Binding]) -> int | None:
    """Return the line between steps that reads one of the bindings after the call."""
    inside = set(ast.walk(call))
    for node in code.between():
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node in inside:
            continue
        if code.names.bindings(node) is bound and (
            _place(node) > _place(call) or _in_one_loop(code, node, call)
        ):
            return node.lineno
    return None


def _in_one_loop(code: Code, one: ast.AST, other: ast.AST) -> bool:
    return bool(_loops(code, one) & _loops(code, other))


def _loops(code: Code, node: ast.AST) -> set[ast.AST]:
    found: set[ast.AST] = set()
    while node in code.names.parents and node not in code.frames:
        node = code.names.parents[node]
        if isinstance(node, LOOPS):
            found.add(node)
    return found


def _place(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]
