"""Workflows as text, with what the lints should say written at the end of the lines: `#! E105`."""

from __future__ import annotations

import ast
import re
import textwrap

from engine.lints import reported
from engine.lints.code import Code, Facts
from engine.lints.finding import Finding
from engine.lints.rules import RULES
from engine.lints.source import Source

KNOWN = ("ship-order", "send-bill")


def lint(text: str, *, has_deadline: bool = True, is_named_once: bool = False) -> list[Finding]:
    """Lint the workflow `handler` of a module; it has a deadline, unless the deadline is the subject."""
    source = Source(textwrap.dedent(text), "shop/workflows.py")
    handler = next(
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "handler"
    )
    handlers = [name.replace("-", "_") for name in KNOWN]
    facts = Facts("shop", KNOWN, handlers, has_deadline=has_deadline, is_named_once=is_named_once)
    code = Code(source, handler, facts)
    found = reported((found for rule in RULES for found in rule(code)), source, "shop")
    return sorted(found, key=lambda one: (one.line, one.column))


def check(text: str, **facts: bool) -> list[Finding]:
    """Assert that the lints say what the text says that they should, on these lines and on no other."""
    found = lint(text, **facts)
    said = sorted((one.line, one.id.removeprefix("engine.")) for one in found)
    lines = enumerate(textwrap.dedent(text).splitlines(), start=1)
    assert said == sorted(
        (line, said) for line, end in lines for note in re.findall(r"#!(.*)", end) for said in note.split()
    )
    return found
