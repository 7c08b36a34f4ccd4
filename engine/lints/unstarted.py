"""I102: nothing in the project starts a workflow, and it has no schedule."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from engine.lints.finding import Found
from engine.lints.uses import Uses

MESSAGE = "Nothing in the project starts this workflow, and it has no schedule: it runs only when a person starts it."
HINT = (
    "Call its `start()`, or `@workflow(schedules=[…])`. If people start it, end the line of its decorator with "
    "`# reprise: allow I102 because people start it`."
)


def find(workflow: str, file: str, handler: ast.AsyncFunctionDef, project: Iterable[Uses]) -> Iterator[Found]:
    """Yield one finding, or none: also where workflows are looked up by names that only run time knows."""
    if not any(_uses(one, workflow, file, handler.name) for one in project):
        yield Found("I102", handler, MESSAGE, HINT)


def _uses(uses: Uses, workflow: str, file: str, function: str) -> bool:
    if uses.is_dynamic or function in uses.identifiers or workflow in uses.looked_up:
        return True
    # In its own file the name also stands where the workflow is declared.
    return uses.file != file and workflow in uses.texts
