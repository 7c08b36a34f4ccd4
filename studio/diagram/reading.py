"""Read a handler's source to a flow."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.lints.code import Code, Facts
from engine.lints.source import Source, first_line
from studio.diagram.expressions import Expressions, Items, TooLargeError, Words, many
from studio.diagram.flow import FALL_OUT, End, Flow, Hidden, Item, Loop, StepNode, ends, every, parts

MOST_LINES = 1_000
LONGEST_WORD = 24
NO_SOURCE = "The source of this handler is not on this machine, so there is neither drawing nor code."
IN_CODE = "This handler builds its steps in code, so there is no drawing. Its steps and source are complete."
MANY_PARTS = "This handler has too many parts to draw. Its steps and source are complete."
TOO_LARGE = "This handler has {lines:,} lines, too many to draw. Its steps and source are complete."


def flow_of(source: Source, handler: ast.AsyncFunctionDef) -> Flow:
    """Return what a handler does."""
    span = first_line(handler), handler.end_lineno or handler.lineno
    lines = span[1] - span[0] + 1
    if lines > MOST_LINES:
        return Flow((), TOO_LARGE.format(lines=lines), (span,))
    reader = Reader(Code(source, handler, Facts(workflow="", known=())), Words(source.text))
    try:
        block = tuple(reader.handler(handler))
        found = list(every(block))
    except (TooLargeError, RecursionError):
        return too_many_parts(span)
    spans = (span, *_outermost(span, *reader.spans)[1:])
    if any(isinstance(one, Hidden) for one in found) and not any(isinstance(one, StepNode) for one in found):
        return Flow((), IN_CODE, spans)
    if not ends(block):
        block = (*block, End(FALL_OUT, span[1], span[1], "complete", "complete"))
    return Flow(block, "", spans)


def too_many_parts(span: tuple[int, int]) -> Flow:
    """Return what is said of a handler that nobody could read as a drawing."""
    return Flow((), MANY_PARTS, (span,))


def _outermost(*spans: tuple[int, int]) -> list[tuple[int, int]]:
    """Leave out the functions inside another one, whose lines are there."""
    return [
        one
        for one in spans
        if not any(other != one and other[0] <= one[0] and one[1] <= other[1] for other in spans)
    ]


class Reader(Expressions):
    """Reads the statements of a handler and of the functions that it calls."""

    def handler(self, handler: ast.AsyncFunctionDef) -> Items:
        self.within.append(handler)
        self.note_gathered(handler)
        return self.statements(handler.body)

    def statements(self, block: Sequence[ast.stmt]) -> Items:
        found: Items = []
        for statement in block:
            found += self._statement(statement)
            if found and isinstance(found[-1], End):
                break  # what follows is never reached
        return found

    def _statement(self, node: ast.stmt) -> Items:
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                before = self.expression(test)
                yes, no = self.statements(body), self.statements(orelse)
                return [*before, *self.branch(node, self.words.of(test), yes, no)]
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node)
            case ast.Try() | ast.TryStar():
                return self._try(node)
            case ast.With() | ast.AsyncWith():
                return self._with(node)
            case ast.Match(subject=subject, cases=cases):
                return [*self.expression(subject), *self._cases(self.words.of(subject), cases)]
            case ast.Assign(targets=targets, value=value):
                return self.assigned(targets, value)
            case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
                return self._end(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return []
        return [item for child in ast.iter_child_nodes(node) for item in self.expression(child)]

    def _end(self, node: ast.Return | ast.Raise | ast.Break | ast.Continue) -> Items:
        before, how, name = list[Item](), "complete", "complete"
        match node:
            case ast.Return(value=value):
                before, name = self.expression(value), _said(value) or "complete"
            case ast.Raise(exc=exc):
                before, how, name = self.expression(exc), "errored", self._raised(exc)
            case ast.Break():
                how, name = "break", "leave the loop"
            case ast.Continue():
                how, name = "next", "next turn"
        if before and isinstance(before[-1], End):
            return before
        ref, line, last = self.place(node)
        return [*before, End(ref, line, last, how, name)]

    def _raised(self, raised: ast.expr | None) -> str:
        of = raised.func if isinstance(raised, ast.Call) else raised
        return "raise" if of is None else f"raise {self.words.of(of)}"

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> Items:
        before, tests, endless = list[Item](), list[Item](), False
        if isinstance(node, ast.While):
            tests = self.expression(node.test)
            words = f"while {self.words.of(node.test)}"
            endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        else:
            before = self.expression(node.iter)
            words = f"for {self.words.of(node.target)} in {self.words.of(node.iter)}"
        body = tests + self.statements(node.body)
        after = self.statements(node.orelse)
        if all(
            (isinstance(one, End) and one.how in ("break", "next")) or _is_plain(one) for one in every(body)
        ):
            return [*before, *after]
        ref, line, _ = self.place(node)
        leaves = _leaves(body)
        loop = Loop(ref, line, line, words, tuple(body), endless and not leaves, endless and leaves)
        return [*before, loop, *after]

    def _try(self, node: ast.Try | ast.TryStar) -> Items:
        body = [*self.statements(node.body), *self.statements(node.orelse)]
        caught: Items = []
        for handler in node.handlers:
            words = "except" if handler.type is None else f"except {self.words.of(handler.type)}"
            inner = self.statements(handler.body)
            caught += self.branch(handler, words, inner, []) if inner else []
        final = self.statements(node.finalbody)
        last = [body.pop()] if (caught or final) and body and isinstance(body[-1], End) else []
        return [*body, *caught, *final, *last]

    def _with(self, node: ast.With | ast.AsyncWith) -> Items:
        before = [item for one in node.items for item in self.expression(one.context_expr)]
        if any(self.code.resolve(one.context_expr) == "asyncio.TaskGroup()" for one in node.items):
            # What the group starts runs side by side, also with what its block does itself.
            found = [[many(item) for item in self._statement(one)] for one in node.body]
            return [*before, *self.fork(node, found)]
        return [*before, *self.statements(node.body)]

    def _cases(self, subject: str, cases: Sequence[ast.match_case]) -> Items:
        """Return the cases of a match: a branch each, one after the other."""
        if not cases:
            return []
        case, *others = cases
        inner = self.statements(case.body)
        is_rest = (
            isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None
        )
        if is_rest:
            return inner
        words = f"{subject} is {self.words.of(case.pattern)}"
        if case.guard is not None:
            words += f" if {self.words.of(case.guard)}"
        return self.branch(case.pattern, words, inner, self._cases(subject, others))


def _leaves(body: Sequence[Item]) -> bool:
    """Return whether a turn of a loop may leave it."""
    if any(isinstance(one, End) and one.how == "break" for one in body):
        return True
    return any(_leaves(inner) for one in body if not isinstance(one, Loop) for inner in parts(one))


def _is_plain(item: Item) -> bool:
    """Return whether an item only leads to others."""
    return not isinstance(item, StepNode | Hidden | End | Loop)


def _said(value: ast.expr | None) -> str:
    """Return the only short text in a returned value: it often says what the outcome is."""
    if value is None or any(isinstance(one, ast.Await) for one in ast.walk(value)):
        return ""  # what a step is given says nothing of the outcome
    said = {
        one.value for one in ast.walk(value) if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }
    only = said.pop() if len(said) == 1 else ""
    return only if 0 < len(only) <= LONGEST_WORD and only.isprintable() else ""
