"""The line of the handler's source that makes a step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from engine.models import Instance
from studio.diagram.flow import StepNode
from studio.instance.code_version import version_of
from studio.instance.steps.line import Line
from studio.workflows.code import CodePage, page_of, page_with


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of code. `has_changed` says that the instance started under other code than this."""

    file: str
    number: int
    html: SafeString
    address: str
    has_changed: bool


def source_line(instance: Instance, line: Line) -> SourceLine | None:
    """Return the line that makes a step, if the source of the handler shows it."""
    version = version_of(instance)
    found = page_of(version.source(instance.workflow))
    if found.handler is None:
        return None
    node = next(_nodes(found, line), None)
    code = found.handler.listing.lines
    at = next((at for at, one in enumerate(code) if node is not None and one.number == node.line), None)
    if at is None:
        return None
    address = reverse("studio:workflow-code", args=[instance.workflow])
    query = page_with(at, version.recorded if version.is_of_start else "")
    # Safe: what the listing has escaped.
    return SourceLine(
        found.file.rpartition("/")[2],
        code[at].number,
        mark_safe(code[at].html.strip()),  # noqa: S308
        f"{address}{query}#L{code[at].number}",
        version.is_changed and not version.is_of_start,
    )


def _nodes(found: CodePage, line: Line) -> Iterator[StepNode]:
    """Yield the parts of the drawing that may make a step, those with its own name first."""
    items = [entry.item for entry in found.entries]
    steps = [one for one in items if isinstance(one, StepNode) and one.kind == line.step.kind]
    yield from (one for one in steps if not one.pattern and one.name == line.step.name)
    yield from (one for one in steps if one.pattern and re.fullmatch(one.pattern, line.step.name, re.DOTALL))
