"""Read what the code says of itself: docstrings, signatures as written, and what stands below fields."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import NamedTuple, get_args

from engine.declare.step_types import BackoffName
from engine.declare.workflow_options import OnCodeChange, StepIdentityRule
from engine.replay.children.parallel import OnFailure

Function = ast.FunctionDef | ast.AsyncFunctionDef

_SENTINELS = ("NO_FUNCTION", "NOTHING", "...")
_AWAITABLES = ("Awaited", "Outcome")
_OF_TYPE_CHECKERS = ("Declare", "DeclareStep", "F", "OnAny")  # they say nothing to people
_CHOICES = {
    name: " | ".join(f'"{value}"' for value in get_args(one))
    for name, one in {
        "StepIdentityRule": StepIdentityRule,
        "OnCodeChange": OnCodeChange,
        "BackoffName": BackoffName,
        "OnFailure": OnFailure,
    }.items()
}
_TYPE_VARIABLE = re.compile(r"^([A-Z]|Ts|Output|\w+_co|\w+_contra)$")
_WIDTH = 96


class Field(NamedTuple):
    name: str
    type: str
    default: str | None
    about: str


@cache
def module_tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(import_module(module)))


def class_of(module: str, name: str) -> ast.ClassDef:
    found = [one for one in module_tree(module).body if isinstance(one, ast.ClassDef) and one.name == name]
    return found[0]


def functions_of(module: str, name: str) -> list[Function]:
    """Return a function of a module: its overloads, and then what implements them."""
    return [one for one in module_tree(module).body if isinstance(one, Function) and one.name == name]


def methods_of(node: ast.ClassDef) -> dict[str, list[Function]]:
    """Return the public methods of a class by name, each with its overloads first; without properties."""
    found: dict[str, list[Function]] = {}
    for one in node.body:
        if isinstance(one, Function) and not one.name.startswith("_") and not _is_property(one):
            found.setdefault(one.name, []).append(one)
    return found


def twins_of(node: ast.ClassDef) -> set[str]:
    """Return the async twins that a class makes of its methods."""
    return {
        target.id
        for one in node.body
        if isinstance(one, ast.Assign) and ast.unparse(one.value).startswith("async_twin(")
        for target in one.targets
        if isinstance(target, ast.Name)
    }


def fields_of(node: ast.ClassDef) -> list[Field]:
    """Return the public fields of a class, with what is written below each, and its properties."""
    return [*_attributes(node), *_properties(node)]


def assigned(node: ast.Module) -> list[Field]:
    """Return the public names that a module assigns, with what is written below each."""
    return [*_attributes(node)]


def attributes_of(node: ast.ClassDef) -> list[str]:
    """Return the public attributes that `__init__` sets."""
    made = [one for one in node.body if isinstance(one, Function) and one.name == "__init__"]
    names: dict[str, None] = {}
    for one in ast.walk(made[0]) if made else ():
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and not one.attr.startswith("_"):
            names[one.attr] = None
    return [name for name in names if name != "args"]


def docstring(node: ast.ClassDef | Function | ast.Module) -> str:
    return ast.get_docstring(node) or ""


def signature(name: str, nodes: list[Function]) -> str:
    """Return a signature as the code writes it, without what says nothing to a caller."""
    node = _telling(nodes)
    returned = node.returns
    if returned is None or ast.unparse(returned) == "Any":
        returned = nodes[0].returns
    is_awaited, given = _returned(returned)
    is_awaited = is_awaited or isinstance(node, ast.AsyncFunctionDef)
    arguments = list(_arguments(node.args))
    is_context = any("contextmanager" in ast.unparse(one) for one in node.decorator_list)
    start = f"{'await ' if is_awaited else 'with ' if is_context else ''}{name}("
    end = ") as …:" if is_context else f"){f' -> {given}' if given else ''}"
    line = f"{start}{', '.join(arguments)}{end}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([start, *(f"    {one}," for one in arguments), end])


def _telling(nodes: list[Function]) -> Function:
    """Return what implements the overloads or, if that takes anything, the overload with most parameters named."""
    node = nodes[-1]
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    says = [one for one in given if one.arg != "self" and type_of(one.annotation)]
    options = node.args.kwarg
    takes_anything = options is not None and not says and not type_of(options.annotation)
    return nodes[-2] if takes_anything and len(nodes) > 1 else node


def _arguments(args: ast.arguments) -> Iterator[str]:
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + [*args.defaults]
    for place, (one, default) in enumerate(zip(positional, defaults, strict=True), start=1):
        if one.arg not in ("self", "cls"):
            yield _argument(one, default)
        if place == len(args.posonlyargs) and positional[place - 1].arg != "self":
            yield "/"
    if args.vararg is not None:
        yield f"*{_argument(args.vararg, None)}"
    elif args.kwonlyargs:
        yield "*"
    for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield _argument(one, default)
    if args.kwarg is not None:
        yield f"**{_argument(args.kwarg, None)}"


def _argument(one: ast.arg, default: ast.expr | None) -> str:
    kind = type_of(one.annotation)
    text = f"{one.arg}: {kind}" if kind else one.arg
    if default is None:
        return text
    value = ast.unparse(default).replace("'", '"')
    value = "…" if value in _SENTINELS else value
    return f"{text} = {value}" if kind else f"{text}={value}"


def type_of(node: ast.expr | None) -> str:
    """Return an annotation without type variables; nothing if it says nothing."""
    if node is None:
        return ""
    plain = ast.unparse(_Plain().visit(ast.parse(ast.unparse(node), mode="eval")).body)
    says_nothing = plain in ("Any", "object", "P.args", "P.kwargs") or _TYPE_VARIABLE.match(plain)
    if says_nothing or any(
        one.id in _OF_TYPE_CHECKERS for one in ast.walk(node) if isinstance(one, ast.Name)
    ):
        return ""
    return _CHOICES.get(plain, plain)


class _Plain(ast.NodeTransformer):
    """Leaves out the type variables of generic types: callers read Handle, not Handle[R]."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "Unpack":
            return node.slice
        names = {one.id for one in ast.walk(node.slice) if isinstance(one, ast.Name)}
        if all(name == "Any" or _TYPE_VARIABLE.match(name) for name in names) and not (
            isinstance(node.slice, ast.List) or "Callable" in ast.unparse(node.value)
        ):
            return node.value
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.Name(node.attr)  # of a module, as in parallel.OnFailure


def _returned(node: ast.expr | None) -> tuple[bool, str]:
    """Return whether the result is awaited, and its type; nothing if that says nothing."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Coroutine":
        assert isinstance(node.slice, ast.Tuple)
        return True, _result(node.slice.elts[-1])
    if node is not None and ast.unparse(node).partition("[")[0] in _AWAITABLES:
        return True, ""
    return False, _result(node)


def _result(node: ast.expr | None) -> str:
    text = type_of(node)
    return "" if text in ("None", "NoReturn") else text


def _attributes(node: ast.ClassDef | ast.Module) -> Iterator[Field]:
    for one, after in zip(node.body, [*node.body[1:], None], strict=True):
        name, kind, value = _target(one)
        if name and not name.startswith("_"):
            about = after.value.value if _is_text(after) else ""  # type: ignore[union-attr]
            yield Field(name, kind, value, inspect.cleandoc(str(about)).replace("\n", " "))


def _target(node: ast.stmt) -> tuple[str, str, str | None]:
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id, type_of(node.annotation), _unparsed(node.value)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, "", _unparsed(node.value)
    return "", "", None


def _properties(node: ast.ClassDef) -> Iterator[Field]:
    for one in node.body:
        if isinstance(one, Function) and not one.name.startswith("_") and _is_property(one):
            yield Field(one.name, type_of(one.returns), None, docstring(one).replace("\n", " "))


def _is_property(node: Function) -> bool:
    return any(ast.unparse(one).endswith("property") for one in node.decorator_list)


def _is_text(node: ast.stmt | None) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _unparsed(node: ast.expr | None) -> str | None:
    return None if node is None else ast.unparse(node)
