"""E108: a workflow changes its params."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from engine.lints.code import Code, is_of_params
from engine.lints.finding import Found
from engine.lints.mutations import mutations, root

HINT = "Work on a copy: `params.model_copy(update=…)`, `dataclasses.replace(params, …)`, or `list(params.items)`."


def find(code: Code) -> Iterator[Found]:
    for node, changed in mutations(code.everywhere()):
        name = root(changed)
        if name is not None and _is_params(code, name):
            message = (
                f"This changes the params through `{ast.unparse(changed)[:60]}`. Every replay decodes them anew, "
                "without changes made by finished steps. The change is never recorded."
            )
            yield Found("E108", node, message, HINT)


def _is_params(code: Code, name: ast.Name) -> bool:
    if is_of_params(code.resolve(name)):
        return True
    found = code.names.bindings(name)
    if len(found) != 1:
        return False
    loop = code.names.parents.get(found[0].node)
    is_item = isinstance(loop, ast.For | ast.comprehension) and loop.target is found[0].node
    return is_item and is_of_params(code.resolve(loop.iter))  # type: ignore[union-attr]
