"""E108 and W107: changes that a replay does not repeat, of the params and of outer objects in a step's body."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from engine.lints.code import Body, Code, is_of_params
from engine.lints.finding import Found
from engine.lints.flow import LOOPS
from engine.lints.names import Binding

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

HINT = "Work on a copy: `params.model_copy(update=…)`, `dataclasses.replace(params, …)`, or `list(params.items)`."

CONTAINERS = ("dict", "list", "set", "collections.Counter", "collections.defaultdict", "collections.deque")
DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def find_changed_params(code: Code) -> Iterator[Found]:
    """E108: a workflow changes its params."""
    for node, changed in mutations(code.everywhere()):
        name = root(changed)
        if name is not None and _is_params(code, name):
            message = (
                f"This changes the params through `{ast.unparse(changed)[:60]}`. Every replay decodes them anew, "
                "without changes made by finished steps. The change is never recorded."
            )
            yield Found("E108", node, message, HINT)


def _is_params(code: Code, name: ast.Name) -> bool:
    if is_of_params(code.resolve(name)):
        return True
    found = code.names.bindings(name)
    if len(found) != 1:
        return False
    loop = code.names.parents.get(found[0].node)
    is_item = isinstance(loop, ast.For | ast.comprehension) and loop.target is found[0].node
    return is_item and is_of_params(code.resolve(loop.iter))  # type: ignore[union-attr]


def find_outside_state(code: Code) -> Iterator[Found]:
    """W107: the body of a step changes an outer list or dict that the handler reads later."""
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
