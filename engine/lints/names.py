"""Resolve the names in a module's source: their bindings and meanings. Nothing is executed."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
STARS = ("datetime", "random", "secrets", "time", "uuid")
DEPTH = 20  # levels of names that refer to names

NO_ROOTS: Mapping[ast.AST, str] = {}


@dataclass(frozen=True, slots=True)
class Binding:
    """One place that gives a name its meaning: an import (`dotted`), a `value`, or something else (neither)."""

    node: ast.AST
    value: ast.expr | None = None
    dotted: str | None = None


class Names:
    """All names of a module, by the scope that binds them."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self.stars: list[str] = []
        self._scopes: dict[ast.AST, ast.AST] = {}
        self._bound: dict[ast.AST, dict[str, list[Binding]]] = {tree: {}}
        self._elsewhere: list[tuple[ast.AST, ast.Global | ast.Nonlocal]] = []
        for node in ast.walk(tree):
            self._note(node)
        for scope, statement in self._elsewhere:
            self._move(scope, statement)

    def scope_of(self, node: ast.AST) -> ast.AST:
        """Return the function, comprehension, class or module in whose scope a node is evaluated."""
        found = self._scopes.get(node)
        if found is None:
            found = self._scopes[node] = self._find_scope(node)
        return found

    def _find_scope(self, node: ast.AST) -> ast.AST:
        child, scope = node, self.parents.get(node)
        while scope is not None:
            if _is_inside(node, child, scope):
                return scope
            child, scope = scope, self.parents.get(scope)
        return self.tree

    def bindings(self, name: ast.Name) -> list[Binding]:
        """Return the bindings of a name at its use. Return none for builtins and star imports."""
        scope = self.scope_of(name)
        first = True
        while True:
            found = self._bound.get(scope, {}).get(name.id)
            # Functions do not see the names of the class that they are in.
            if found and (first or not isinstance(scope, ast.ClassDef)):
                return found
            if scope is self.tree:
                return []
            scope, first = self.scope_of(scope), False

    def resolve(
        self, node: ast.AST, roots: Mapping[ast.AST, str] = NO_ROOTS, depth: int = DEPTH
    ) -> str | None:
        """Return the dotted name that an expression means: `datetime.datetime.now`, `httpx.Client().get`.

        `roots` maps arguments to names. Return None if the source is ambiguous.
        """
        if depth == 0:
            return None
        match node:
            case ast.Name():
                return self._resolve_name(node, roots, depth)
            case ast.Attribute(value=value, attr=attr):
                base = self.resolve(value, roots, depth - 1)
                return None if base is None else f"{base}.{attr}"
            case ast.Subscript(value=value):
                base = self.resolve(value, roots, depth - 1)
                return None if base is None else f"{base}[]"
            case ast.Call(func=func):
                base = self.resolve(func, roots, depth - 1)
                return None if base is None else f"{base}()"
            case ast.Await(value=value) | ast.NamedExpr(value=value):
                return self.resolve(value, roots, depth - 1)
        return None

    def function(self, node: ast.AST) -> Function | None:
        """Return the function of this module that an expression names, or the expression itself if it is a lambda."""
        if isinstance(node, ast.Lambda):
            return node
        if not isinstance(node, ast.Name):
            return None
        found = self.bindings(node)
        if len(found) != 1:
            return None
        only = found[0]
        if isinstance(only.node, FUNCTIONS):
            return only.node
        return only.value if isinstance(only.value, ast.Lambda) else None

    def _resolve_name(self, name: ast.Name, roots: Mapping[ast.AST, str], depth: int) -> str | None:
        found = self.bindings(name)
        if not found:
            return self._from_outside(name.id)
        if len(found) > 1:  # as when an import has a fallback
            meanings = {one.dotted for one in found}
            return meanings.pop() if len(meanings) == 1 else None
        only = found[0]
        if only.node in roots:
            return roots[only.node]
        if only.value is not None:
            return self.resolve(only.value, roots, depth - 1)
        return only.dotted

    def _from_outside(self, name: str) -> str | None:
        """Return the origin of a name that the module does not bind."""
        if hasattr(builtins, name):
            return name
        homes = [star for star in self.stars if name in _exported(star)] or self.stars
        return f"{homes[0]}.{name}" if len(homes) == 1 else None

    # Reading

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    top = alias.name.partition(".")[0]
                    self._bind(node, alias.asname or top, dotted=alias.name if alias.asname else top)
            case ast.ImportFrom(names=names):
                self._note_from(node)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self._bind(node, name)
            case ast.arg(arg=name):
                self._bind(node, name)
            case ast.Name(id=name, ctx=ast.Store()):
                self._bind(node, name, value=self._value_of(node))
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                self._bind(node, name)
            case ast.MatchMapping(rest=str(name)):
                self._bind(node, name)
            case ast.Global() | ast.Nonlocal():
                self._elsewhere.append((self.scope_of(node), node))

    def _note_from(self, node: ast.ImportFrom) -> None:
        home = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(home)
            else:
                self._bind(node, alias.asname or alias.name, dotted=f"{home}.{alias.name}")

    def _bind(
        self, node: ast.AST, name: str, *, value: ast.expr | None = None, dotted: str | None = None
    ) -> None:
        scope = self.scope_of(node)
        while isinstance(self.parents.get(node), ast.NamedExpr) and isinstance(scope, COMPREHENSIONS):
            scope = self.scope_of(scope)
        self._bound.setdefault(scope, {}).setdefault(name, []).append(Binding(node, value, dotted))

    def _move(self, scope: ast.AST, statement: ast.Global | ast.Nonlocal) -> None:
        """Move the bindings of `global` and `nonlocal` names to the scope that owns them."""
        for name in statement.names:
            moved = self._bound.get(scope, {}).pop(name, [])
            home = self.tree if isinstance(statement, ast.Global) else self._home(scope, name)
            self._bound.setdefault(home, {}).setdefault(name, []).extend(moved)

    def _home(self, scope: ast.AST, name: str) -> ast.AST:
        while scope is not self.tree:
            scope = self.scope_of(scope)
            if isinstance(scope, FUNCTIONS) and name in self._bound.get(scope, {}):
                return scope
        return self.tree

    def _value_of(self, name: ast.Name) -> ast.expr | None:
        """Return the expression that is assigned to the name, if there is one."""
        match self.parents[name]:
            case ast.Assign(value=value) | ast.NamedExpr(value=value):
                return value
            case ast.AnnAssign(value=value):
                return value
            case ast.withitem(context_expr=value):
                return value
            case ast.Tuple(elts=targets) as pair:
                match self.parents[pair]:
                    case ast.Assign(value=ast.Tuple(elts=values)) if len(values) == len(targets):
                        return values[targets.index(name)]
        return None


def own(function: ast.AST) -> Iterator[ast.AST]:
    """Walk the nodes that run when a function runs, in source order, without the bodies of inner functions."""
    body = function.body if isinstance(function, FUNCTIONS) else [function]
    stack: list[ast.AST] = [*reversed(body)] if isinstance(body, list) else [body]
    while stack:
        node = stack.pop()
        yield node
        inner = _outside(node) if isinstance(node, FUNCTIONS) else ast.iter_child_nodes(node)
        stack.extend(reversed(list(inner)))


def _outside(function: Function) -> Iterator[ast.AST]:
    """Yield the parts of a definition that are evaluated at the definition itself."""
    if not isinstance(function, ast.Lambda):
        yield from function.decorator_list
    yield from function.args.defaults
    yield from (one for one in function.args.kw_defaults if one is not None)


def _is_inside(node: ast.AST, child: ast.AST, scope: ast.AST) -> bool:
    """Return whether a node below this child of `scope` is evaluated in that scope, unlike a decorator."""
    match scope:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() if isinstance(child, ast.arguments):
            return isinstance(node, ast.arg)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return child is not scope.returns and child not in scope.decorator_list
        case ast.ClassDef():
            return child in scope.body
    return isinstance(scope, (ast.Lambda, ast.Module, *COMPREHENSIONS))


@functools.cache
def _exported(star: str) -> frozenset[str]:
    """Return the names that a star import binds, for standard library modules that the rules know."""
    if star not in STARS:
        return frozenset()
    module = importlib.import_module(star)
    return frozenset(getattr(module, "__all__", [name for name in vars(module) if name[0] != "_"]))
