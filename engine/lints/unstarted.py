"""I102: nothing in the project starts a workflow, and it has no schedule."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from engine.lints.finding import Found
from engine.lints.uses import Uses

MESSAGE = (
    "Nothing in the project starts this workflow, and it has no schedule: it runs only if a person starts it."
)
HINT = (
    "Call its `start()`, or add a schedule with `@workflow(schedules=[…])`. If people start it, end the line of its "
    "decorator with `# reprise: allow I102 because people start it`."
)


def find(workflow: str, file: str, handler: ast.AsyncFunctionDef, project: Iterable[Uses]) -> Iterator[Found]:
    """Yield one finding at most. Yield none if the project looks up workflows by names computed at run time."""
    if not any(_uses(one, workflow, file, handler.name) for one in project):
        yield Found("I102", handler, MESSAGE, HINT)


def _uses(uses: Uses, workflow: str, file: str, function: str) -> bool:
    if uses.is_dynamic or function in uses.identifiers or workflow in uses.looked_up:
        return True
    # In its own file the name also occurs in the declaration of the workflow.
    return uses.file != file and workflow in uses.texts
