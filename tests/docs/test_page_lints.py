"""The lints find what the guide says they find, and nothing in the code that it calls right."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from engine.lints.code import Code, Facts
from engine.lints.rules import RULES
from engine.lints.source import Source, first_line
from tests.docs.pages import PAGES, PROJECT, as_program, blocks_of


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_the_lints_of_a_page_are_those_that_it_names(page: Path) -> None:
    text = page.read_text()
    found = lints_by_line(Source(as_program(text), page.name))
    for block in blocks_of(text):
        lines = range(block.line, block.line + block.code.count("\n") + 1)
        said = {id_ for line, id_ in found if line in lines}
        assert said == set(block.lints), f"{page.name}, line {block.line}"


def lints_by_line(source: Source) -> set[tuple[int, str]]:
    """Return the errors and warnings of all that takes a WorkflowStep."""
    functions = [node for node in ast.walk(source.tree) if isinstance(node, ast.AsyncFunctionDef)]
    known = {one.name.replace("_", "-") for one in functions}
    return {
        (first_line(found.node), f"engine.{found.id}")
        for function in functions
        if function.args.args and function.args.args[0] in source.steps
        for rule in RULES
        for found in rule(Code(source, function, Facts("page", known)))
        if not found.id.startswith("I") and not source.allows(found.id, found.node)
    }
