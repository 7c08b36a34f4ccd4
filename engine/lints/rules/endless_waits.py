"""I112: a wait without a timeout."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.lints.code import Code
from engine.lints.finding import Found
from engine.lints.operations import DurableCall, has_hidden, keyword

# Whether the wait has no timeout by default.
WAITS = {"wait_for_event": False, "listen": True, "request": True, "wait_for_instance": True}


def find(code: Code) -> Iterator[Found]:
    if code.facts.has_deadline:
        return
    for call in code.calls():
        # A wait that is not awaited at once may race with a timer.
        if _is_endless(call) and isinstance(code.names.parents[call.node], ast.Await):
            message = (
                f"`step.{call.method}` has no timeout, and neither does the workflow: it may wait forever."
            )
            hint = 'Set a timeout on the call, `timeout="7 days"`, or on the workflow, `@workflow(timeout="30 days")`.'
            if call.method == "listen":
                hint = 'Set a timeout on the workflow, `@workflow(timeout="30 days")`, or use `step.wait_for_event`.'
            yield Found("I112", call.node, message, hint)


def _is_endless(call: DurableCall) -> bool:
    if call.method not in WAITS or has_hidden(call.node):
        return False
    timeout = keyword(call.node, "timeout")
    if timeout is None:
        return WAITS[call.method]
    return isinstance(timeout, ast.Constant) and timeout.value is None
