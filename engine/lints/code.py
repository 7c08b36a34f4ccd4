"""Separate a workflow's code between steps from the code inside steps.

Code between steps is the handler itself, the inner functions that it calls, and the functions of the same module that
these call (one level deep). A function passed to `step.do` or a similar call is a body, where everything is allowed.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from engine.lints.names import FUNCTIONS, Function, own
from engine.lints.operations import DECORATED, OPERATIONS, PARAMS, STEP, DurableCall, keyword
from engine.lints.source import Source

# Functions that call their first argument with the other arguments.
CALLERS = ("asyncio.to_thread", "functools.partial")
WRAPPERS = ("asgiref.sync.sync_to_async", "channels.db.database_sync_to_async")


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a workflow that the source of its handler does not show."""

    workflow: str
    known: Collection[str]
    handlers: Collection[str] = ()  # names of the functions of known workflows
    has_deadline: bool = False
    is_named_once: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """A function that is the body of a step, the call that runs it, and its positional arguments."""

    call: ast.Call
    function: Function
    args: tuple[ast.expr, ...]

    def given(self) -> Iterator[tuple[ast.arg, ast.expr]]:
        """Pair the function's parameters with their values. The context is passed by name, whatever its position."""
        takes = [*self.function.args.posonlyargs, *self.function.args.args]
        return zip((arg for arg in takes if arg.arg != "ctx"), self.args, strict=False)


class Code:
    """The source of one workflow, as the rules read it."""

    def __init__(self, source: Source, handler: ast.AsyncFunctionDef, facts: Facts) -> None:
        self.source, self.handler, self.facts = source, handler, facts
        self.names = source.names
        self.roots: dict[ast.AST, str] = dict.fromkeys(source.steps, STEP)
        args = [*handler.args.posonlyargs, *handler.args.args]
        self.roots |= dict(zip(args, (STEP, PARAMS), strict=False))
        self.frames: list[Function] = []
        self._follow(handler, level=0)
        self._own = {frame: list(own(frame)) for frame in self.frames}
        self.bodies = list(self._find_bodies())
        for body in self.bodies:
            self._hand_over(body.given())

    # Reading

    def between(self) -> Iterator[ast.AST]:
        """Yield every node that is evaluated between steps."""
        for frame in self.frames:
            yield from self._own[frame]

    def own(self, frame: Function) -> list[ast.AST]:
        return self._own[frame]

    def calls(self, frame: Function | None = None) -> Iterator[DurableCall]:
        """Yield the durable calls of one frame, or of all: the calls that create a step."""
        for node in self.between() if frame is None else self._own[frame]:
            if found := self.durable(node):
                yield found

    def everywhere(self) -> Iterator[ast.AST]:
        """Yield every node of the handler, the functions that it calls, and the bodies of its steps."""
        seen: set[ast.AST] = set()
        for function in [*self.frames, *(body.function for body in self.bodies)]:
            for node in ast.walk(function):
                if node not in seen:
                    seen.add(node)
                    yield node

    def resolve(self, node: ast.AST) -> str | None:
        """Return the dotted name of an expression, with `<step>` and `<params>` for `step` and the params."""
        return self.names.resolve(node, self.roots)

    def durable(self, node: ast.AST) -> DurableCall | None:
        """Return the durable call at a node. `@step.do("name")` is not one; calling the function below it is."""
        if not isinstance(node, ast.Call):
            return None
        head, _, method = (self.resolve(node.func) or "").partition(".")
        if head == STEP and method in OPERATIONS:
            found = DurableCall(node, method)
            return None if method == "do" and found.body is None and not _has_star(node) else found
        called = self.names.function(node.func)
        if called is not None and self.decoration(called) is not None:
            return DurableCall(node, DECORATED)
        return None

    def decoration(self, function: Function) -> ast.Call | None:
        """Return the `@step.do(…)` above a function."""
        for decorator in [] if isinstance(function, ast.Lambda) else function.decorator_list:
            if isinstance(decorator, ast.Call) and self.resolve(decorator.func) == f"{STEP}.do":
                return decorator
        return None

    def _find_bodies(self) -> Iterator[Body]:
        for node in self.between():
            if isinstance(node, FUNCTIONS) and (decoration := self.decoration(node)):
                yield Body(decoration, node, ())
            elif (call := self.durable(node)) and call.body is not None:
                yield from self._bodies_of(call, call.body)

    def _bodies_of(self, call: DurableCall, said: ast.expr) -> Iterator[Body]:
        if isinstance(said, ast.Call) and self.resolve(said.func) == CALLERS[1] and said.args:
            said = said.args[0]
        function = self.names.function(said)
        if function is None:
            return
        given = call.node.args[(call.operation.body or 0) + 1 :] if call.method in ("do", "run") else []
        yield Body(call.node, function, tuple(given) if said is call.body else ())

    def target(self, call: ast.Call) -> tuple[Function | None, list[ast.expr]]:
        """Return the function of this module that a call runs at once, and its arguments."""
        if isinstance(call.func, ast.Call) and self.resolve(call.func.func) in WRAPPERS and call.func.args:
            return self.names.function(call.func.args[0]), call.args
        if self.resolve(call.func) == CALLERS[0] and call.args:
            return self.names.function(call.args[0]), call.args[1:]
        return self.names.function(call.func), call.args

    # Following

    def _follow(self, frame: Function, *, level: int) -> None:
        self.frames.append(frame)
        for node in own(frame):
            if isinstance(node, ast.Call):
                self._follow_call(node, level)

    def _follow_call(self, call: ast.Call, level: int) -> None:
        target, args = self.target(call)
        if target is None or self.decoration(target) is not None:
            return
        self._hand_over(_pairs(call, args, target))
        inner = level if self._is_within_frames(target) else level + 1
        if target not in self.frames and inner <= 1:
            self._follow(target, level=inner)

    def _hand_over(self, given: Iterable[tuple[ast.arg, ast.expr]]) -> None:
        """Record which of a function's parameters receive `step` or the params."""
        for arg, value in given:
            meaning = self.resolve(value) or ""
            if meaning == STEP or is_of_params(meaning):
                self.roots[arg] = meaning

    def _is_within_frames(self, target: Function) -> bool:
        """Return whether a function is nested, at any depth, in one that is already read."""
        scope: ast.AST = target
        while not isinstance(scope, ast.Module):
            scope = self.names.scope_of(scope)
            if scope in self.frames:
                return True
        return False


def is_of_params(meaning: str | None) -> bool:
    """Return whether the meaning is the params, or an uncopied part of them."""
    return meaning is not None and meaning.startswith(PARAMS) and "(" not in meaning


def _pairs(call: ast.Call, args: list[ast.expr], target: Function) -> Iterator[tuple[ast.arg, ast.expr]]:
    takes = [*target.args.posonlyargs, *target.args.args]
    by_name = {arg.arg: arg for arg in [*takes, *target.args.kwonlyargs]}
    yield from zip(takes, args, strict=False)
    yield from ((by_name[one.arg], one.value) for one in call.keywords if one.arg in by_name)


def _has_star(call: ast.Call) -> bool:
    return any(isinstance(one, ast.Starred) for one in call.args) or keyword(call, "fn") is not None
