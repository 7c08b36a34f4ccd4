"""Read handlers from text, and write what was read as an outline."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from textwrap import dedent, indent

from engine.lints.source import Source
from studio.diagram.canvas import words_of
from studio.diagram.flow import Branch, End, Flow, Fork, Hidden, Item, Loop, StepNode
from studio.diagram.reading import flow_of

HEAD = "import asyncio\nfrom engine import WorkflowStep, define_step\n"


def read(body: str, *, below: str = "") -> Flow:
    """Return the flow of a handler with this body, in a module with more `below`."""
    inside = indent(dedent(body).strip("\n"), "    ")
    return read_module(
        f"{HEAD}async def handler(step: WorkflowStep, order: int) -> str:\n{inside}\n{dedent(below)}"
    )


def read_module(text: str) -> Flow:
    source = Source(text, "workflows.py")
    handler = next(node for node in ast.walk(source.tree) if isinstance(node, ast.AsyncFunctionDef))
    return flow_of(source, handler)


def outline(block: Sequence[Item]) -> str:
    """Return a block as text: `if x(yes: …; no: …)`."""
    return ", ".join(_said(item) for item in block)


def _said(item: Item) -> str:
    match item:
        case StepNode(kind=kind, is_many=is_many):
            return f"{kind} {item.name}{'*' if is_many else ''}"
        case End(how=how):
            return f"{how}:{item.name}"
        case Hidden():
            return f"hidden {item.name}"
        case Branch(arms=(yes, no)):
            return f"[{item.words} ? {outline(yes.items)} : {outline(no.items)}]"
        case Loop(body=body):
            return f"<{item.words}: {outline(body)}>"
        case Fork(arms=arms):
            return f"({' | '.join(outline(arm.items) for arm in arms)})"
    return words_of(item)
