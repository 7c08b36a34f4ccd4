"""Lints: mistakes that are visible in the source of workflows.

Lints only read the source and execute none of it. A comment at the end of a line silences a lint there:
`# reprise: allow W106 because the call may happen twice`. Django's SILENCED_SYSTEM_CHECKS silences one everywhere.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from django.conf import settings

from engine.declare.registry import Workflow, workflows
from engine.lints import project
from engine.lints.code import Code, Facts
from engine.lints.finding import Finding, Found, Severity
from engine.lints.operations import DECORATED, DurableCall, argument, text
from engine.lints.rules import RULES
from engine.lints.source import Source, first_line

__all__ = ["Finding", "Severity", "all_findings", "findings", "findings_of_code", "source_of", "step_names"]


def findings(workflow: Workflow[Any, Any]) -> list[Finding]:
    """Return all findings of a workflow, in source order. They are computed once per process."""
    silenced = frozenset(settings.SILENCED_SYSTEM_CHECKS)
    return [one for one in _findings(workflow, frozenset(workflows)) if one.id not in silenced]


def findings_of_code(workflow: Workflow[Any, Any]) -> list[Finding]:
    """Return the errors and warnings of one workflow, quickly: no other file is read."""
    known = frozenset(workflows)
    silenced = {*settings.SILENCED_SYSTEM_CHECKS}
    found = _findings_of_code(workflow, known)
    return [one for one in found if one.id not in silenced and one.severity != Severity.INFO]


def all_findings(chosen: Collection[Workflow[Any, Any]] | None = None) -> list[Finding]:
    """Return the findings of all workflows, or of the chosen ones. A shared finding is listed under the first workflow.

    For all workflows, also report lookups of unknown workflows elsewhere in the project.
    """
    every: list[Finding] = []
    for workflow in workflows.values() if chosen is None else chosen:
        every += findings(workflow)
    if chosen is None:
        silenced = settings.SILENCED_SYSTEM_CHECKS
        every += [one for one in project.unknown_lookups(frozenset(workflows)) if one.id not in silenced]
    places = {(one.id, one.file, one.line, one.column): one for one in reversed(every)}
    return sorted(places.values(), key=_by_place)


def source_of(workflow: Workflow[Any, Any]) -> tuple[Source | None, ast.AsyncFunctionDef | None]:
    """Return the module and the function of a workflow's handler, or None if it has no file, as in a shell."""
    # The declaration is at the innermost of the wrapped functions.
    declared = inspect.unwrap(workflow.handler).__code__
    source = Source.of(declared.co_filename)
    line = declared.co_firstlineno
    return source, None if source is None else source.handler(declared.co_name, line)


@functools.lru_cache(maxsize=1000)
def _findings(workflow: Workflow[Any, Any], known: frozenset[str]) -> tuple[Finding, ...]:
    source, handler = source_of(workflow)
    if source is None or handler is None:
        return ()
    found: Iterable[Found] = ()
    if not workflow.schedules:
        found = project.find_unstarted(workflow.name, source.file, handler, project.uses(source.file))
    mine = reported(found, source, workflow.name)
    return tuple(sorted([*_findings_of_code(workflow, known), *mine], key=_by_place))


@functools.lru_cache(maxsize=1000)
def _findings_of_code(workflow: Workflow[Any, Any], known: frozenset[str]) -> tuple[Finding, ...]:
    source, handler = source_of(workflow)
    if source is None or handler is None:
        return ()
    facts = Facts(
        workflow=workflow.name,
        known=known,
        handlers=frozenset(one.handler.__name__ for one in workflows.values()),
        has_deadline=workflow.timeout is not None,
        is_named_once=workflow.step_identity == "name",
    )
    code = Code(source, handler, facts)
    found = reported((found for rule in RULES for found in rule(code)), source, workflow.name)
    return tuple(sorted(found, key=_by_place))


@functools.lru_cache(maxsize=1000)
def step_names(workflow: Workflow[Any, Any]) -> tuple[str, ...]:
    """Return the names of the steps in the source of the handler, in its order, as far as they are plain text.

    Which of them run, and how often, depends on the params. Empty if there is no source.
    """
    source, handler = source_of(workflow)
    if source is None or handler is None:
        return ()
    code = Code(source, handler, Facts(workflow=workflow.name, known=()))
    calls = sorted(code.calls(handler), key=lambda call: (call.node.lineno, call.node.col_offset))
    return tuple(dict.fromkeys(name for call in calls if (name := text(_name_of(code, call)))))


def _name_of(code: Code, call: DurableCall) -> ast.expr | None:
    function = code.names.function(call.node.func) if call.method == DECORATED else None
    decoration = None if function is None else code.decoration(function)
    return call.name if decoration is None else argument(decoration, 0, "name")


def _by_place(one: Finding) -> tuple[str, int, int, str]:
    return one.file, one.line, one.column, one.id


def reported(found: Iterable[Found], source: Source, workflow: str) -> Iterator[Finding]:
    """Convert what the rules found to findings, except where a comment allows it."""
    for one in found:
        if source.allows(one.id, one.node):
            continue
        hint = one.hint
        if source.has_malformed_comment(one.node):
            hint += f" (To allow it, the comment must be: # reprise: allow {one.id} because …)"
        yield Finding(
            id=f"engine.{one.id}",
            severity=Severity.of(one.id),
            workflow=workflow,
            file=source.file,
            line=first_line(one.node),
            column=getattr(one.node, "col_offset", 0) + 1,
            message=one.message,
            hint=hint,
        )
