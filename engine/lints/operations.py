"""The durable operations of `step`, as the lints know them."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of `step`.

    `kind` is the kind of its named steps, or empty. The other fields are positions of arguments: of the body, a
    duration, a workflow.
    """

    kind: str = ""
    body: int | None = None
    duration: int | None = None
    workflow: int | None = None


STEP = "<step>"
PARAMS = "<params>"
DECORATED = "@step.do"  # a call of a function below `@step.do("name")`, which has the name and the body

OPERATIONS = {
    "do": Operation("do", body=1),
    "run": Operation(body=0),
    "map": Operation("map", body=2),
    "for_each": Operation("map", body=2),
    "batch": Operation("map", body=2),
    "sleep": Operation("sleep", duration=1),
    "sleep_until": Operation("sleep"),
    "wait_for_event": Operation("event"),
    "listen": Operation("event"),
    "request": Operation("request"),
    "run_workflow": Operation("child", workflow=1),
    "spawn": Operation("child", workflow=1),
    "wait_for_instance": Operation("child"),
    "parallel": Operation("parallel"),
    "progress": Operation(),
    "fail": Operation(),
    "abort": Operation(),
    "complete": Operation(),
    DECORATED: Operation(),
}
ENDINGS = ("fail", "abort", "complete")
DURATIONS = ("duration", "timeout", "delay", "max_delay")  # names of arguments


@dataclass(frozen=True, slots=True)
class DurableCall:
    """A call of an operation in the source."""

    node: ast.Call
    method: str

    @property
    def operation(self) -> Operation:
        return OPERATIONS[self.method]

    @property
    def name(self) -> ast.expr | None:
        """Return the expression of the step's name."""
        return argument(self.node, 0, "name") if self.operation.kind else None

    @property
    def body(self) -> ast.expr | None:
        at = self.operation.body
        return None if at is None else argument(self.node, at, "fn")


def argument(call: ast.Call, at: int, name: str) -> ast.expr | None:
    """Return an argument by position or name. Return None if it is missing or hidden by a star argument."""
    before = call.args[: at + 1]
    if len(before) > at and not any(isinstance(one, ast.Starred) for one in before):
        return before[at]
    return keyword(call, name)


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def has_hidden(call: ast.Call) -> bool:
    """Return whether the call has arguments that the source does not show: `**options`."""
    return any(one.arg is None for one in call.keywords)


def text(node: ast.AST | None) -> str | None:
    """Return the value of a string literal."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
