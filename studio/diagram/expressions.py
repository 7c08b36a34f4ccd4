"""What an expression of a handler does, in the order in which Python evaluates it."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.lints.code import Code
from engine.lints.names import COMPREHENSIONS, Function
from engine.lints.operations import ENDINGS, STEP, DurableCall, argument, text
from studio.diagram.flow import Arm, Branch, End, Fork, Hidden, Item, Loop, StepNode
from studio.diagram.naming import kind_of, name_of

SIDE_BY_SIDE = ("asyncio.gather", "asyncio.wait", "asyncio.as_completed")
HOW = {"complete": "complete", "fail": "errored", "abort": "terminated"}
Items = list[Item]


class TooLargeError(Exception):
    """The handler has too many items to draw."""


class Words:
    """The source's own words."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")

    def of(self, node: ast.expr | ast.pattern) -> str:
        """Return the source of an expression, on one line."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        lines = [line.encode() for line in self._lines[first : last + 1]]
        if not lines:
            return ""
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return " ".join(b"\n".join(lines).decode(errors="replace").split())


class Expressions(ABC):
    """Reads expressions. Numbers every item by its line, so that it has an address."""

    MOST = 400  # items

    def __init__(self, code: Code, words: Words) -> None:
        self.code, self.words = code, words
        self.within: list[Function] = []
        self.spans: dict[tuple[int, int], None] = {}
        self._ids: dict[int, int] = {}
        self._placed = 0
        self._inlined = 0
        self._waiting: dict[str, Items] = {}  # coroutines that a variable holds until they are gathered
        self._gathered: set[str] = set()

    @abstractmethod
    def statements(self, block: Sequence[ast.stmt]) -> Items:
        """Return what a block of statements does."""

    def place(self, node: ast.expr | ast.stmt | ast.ExceptHandler | ast.pattern) -> tuple[str, int, int]:
        """Return an unused id for an item, and its lines."""
        line = node.lineno
        self._ids[line] = number = self._ids.get(line, 0) + 1
        self._placed += 1
        if self._placed > self.MOST:
            raise TooLargeError
        return f"{line}" if number == 1 else f"{line}-{number}", line, node.end_lineno or line

    def expression(self, node: ast.AST | None) -> Items:
        """Return what an expression does."""
        match node:
            case None | ast.Lambda():
                return []
            case ast.Call():
                return self._call(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                yes, no = self.expression(body), self.expression(orelse)
                return [*self.expression(test), *self.branch(test, self.words.of(test), yes, no)]
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
        return [item for child in ast.iter_child_nodes(node) for item in self.expression(child)]

    def branch(
        self, node: ast.expr | ast.stmt | ast.ExceptHandler | ast.pattern, words: str, yes: Items, no: Items
    ) -> Items:
        """Return a branch, unless neither side has anything to draw."""
        if not yes and not no:
            return []
        ref, line, _ = self.place(node)
        arms = Arm(f"{ref}/yes", "yes", tuple(yes)), Arm(f"{ref}/no", "no", tuple(no))
        return [Branch(ref, line, line, words, arms)]

    def _call(self, call: ast.Call) -> Items:
        durable = self.code.durable(call)
        if durable is not None:
            return [*self._arguments(call), *self._durable(durable)]
        if self.code.resolve(call.func) in SIDE_BY_SIDE:
            return self.fork(call, [self._part(one) for one in _gathered(call)])
        target, _ = self.code.target(call)
        if isinstance(target, ast.Lambda):
            return [*self._arguments(call), *self.expression(target.body)]
        if target is not None and target in self.code.frames and target not in self.within:
            return [*self._arguments(call), *self._inline(call, target)]
        found = self._arguments(call)
        return [*found, self._hidden(call)] if self._hands_over_step(call) else found

    def _arguments(self, call: ast.Call) -> Items:
        given: list[ast.expr] = [call.func, *call.args, *(one.value for one in call.keywords)]
        return [item for one in given for item in self.expression(one)]

    def _durable(self, call: DurableCall) -> Items:
        ref, line, last = self.place(call.node)
        if call.method in ENDINGS:
            said = text(argument(call.node, 0, "message" if call.method == "fail" else "reason"))
            return [End(ref, line, last, HOW[call.method], said or call.method)]
        name, pattern = name_of(call, self.code)
        within = getattr(self.within[-1], "name", "") if len(self.within) > 1 else ""
        return [StepNode(ref, line, last, kind_of(call), name, pattern, within=within)]

    def _inline(self, call: ast.Call, target: Function) -> Items:
        """Return what a function of the module does, in place of its call."""
        assert not isinstance(target, ast.Lambda)
        self._inlined += 1  # functions that call others twice double with each level, also without a step
        if self._inlined > self.MOST:
            raise TooLargeError
        self.within.append(target)
        found = self.statements(target.body)
        self.within.pop()
        if found and isinstance(found[-1], End) and found[-1].how == "complete":
            found.pop()  # its return leads back to the handler
        if found:
            self.spans[target.lineno, target.end_lineno or target.lineno] = None
        return found

    def _hidden(self, call: ast.Call) -> Hidden:
        ref, line, last = self.place(call)
        return Hidden(ref, line, last, f"{self.words.of(call.func)}()")

    def _hands_over_step(self, call: ast.Call) -> bool:
        given = [*call.args, *(one.value for one in call.keywords)]
        return any(self.code.resolve(one) == STEP for one in given)

    def _part(self, node: ast.expr) -> Items:
        """Return what one argument of a gather does."""
        if isinstance(node, ast.Starred):
            return [many(item) for item in self._part(node.value)]
        if isinstance(node, ast.Name) and node.id in self._waiting:
            return self._waiting.pop(node.id)
        return self.expression(node)

    def fork(self, node: ast.expr | ast.stmt, found: Sequence[Items]) -> Items:
        """Return what runs side by side, as a fork if there are several parts."""
        drawn = [items for items in found if items]
        if len(drawn) < 2:
            return [item for items in drawn for item in items]
        ref, line, _ = self.place(node)
        arms = tuple(Arm(f"{ref}/{n}", "", tuple(one)) for n, one in enumerate(drawn))
        return [Fork(ref, line, line, arms)]

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Items:
        outer = [item for one in node.generators for item in self.expression(one.iter)]
        made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        inner = [item for one in made for item in self.expression(one)]
        if not inner:
            return outer
        ref, line, last = self.place(node)
        first = node.generators[0]
        words = f"for {self.words.of(first.target)} in {self.words.of(first.iter)}"
        return [*outer, Loop(ref, line, last, words, tuple(inner))]

    def note_gathered(self, function: ast.AST) -> None:
        """Note the variables that are passed to a gather: what they hold runs there."""
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and self.code.resolve(node.func) in SIDE_BY_SIDE:
                self._gathered |= {one.id for one in _bare(_gathered(node)) if isinstance(one, ast.Name)}

    def assigned(self, targets: Sequence[ast.expr], value: ast.expr) -> Items:
        """Return what an assignment does, or keep it until its variable is gathered."""
        found = self.expression(value)
        match targets:
            case [ast.Name(id=name)] if name in self._gathered and not isinstance(value, ast.Await):
                self._waiting[name] = found
                return []
        return found


def many(item: Item) -> Item:
    """Return a loop of one step, whose turns run side by side, as that step."""
    match item:
        case Loop(body=(StepNode() as step,)):
            return replace(step, is_many=True)
    return item


def _gathered(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a gather; asyncio.wait takes them as one list."""
    found: list[ast.expr] = []
    for one in call.args:
        match one:
            case ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts):
                found += elts
            case ast.Starred(value=ast.List(elts=elts) | ast.Tuple(elts=elts)):
                found += elts
            case _:
                found.append(ast.Starred(one) if isinstance(one, COMPREHENSIONS) else one)
    return found


def _bare(those: Sequence[ast.expr]) -> Iterator[ast.expr]:
    for one in those:
        yield one.value if isinstance(one, ast.Starred) else one
