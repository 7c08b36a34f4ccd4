"""E105: code between steps reads the clock, draws random numbers, generates IDs, or sleeps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.lints.code import Code
from engine.lints.finding import Found
from engine.lints.moving import SLEEP, twin_of
from engine.lints.rules.moving_names import names


def find(code: Code) -> Iterator[Found]:
    in_names = {node for name in names(code) for node in ast.walk(name)}
    for node in code.between():
        found = twin_of(code, node)
        if found is None or node in in_names:
            continue
        what, twin = found
        if twin == SLEEP:
            yield Found("E105", node, _holds_up(what), f"Use `{twin}`, which parks the instance.")
        else:
            message = (
                f"`{what}()` between steps differs on every replay, so that the replay may take another path."
            )
            yield Found("E105", node, message, f"Use `{twin}`, or call it in the body of a step.")


def _holds_up(what: str) -> str:
    if what == "asyncio.sleep":
        return "`asyncio.sleep()` between steps is refused, because a replay cannot repeat it."
    return f"`{what}()` between steps blocks the worker and all its instances, again on every replay."
