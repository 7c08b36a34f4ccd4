"""The options of `@workflow`, in words, and which of them its code sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import Enum
from typing import Any

from engine.declare.registry import Workflow
from engine.declare.workflow_options import WorkflowOptions
from engine.values.durations import format_duration
from engine.values.retry import StepOptions

FINAL_STATUSES = ("complete", "errored", "terminated")
MEANINGS = {
    "timeout": "How long an instance may take from its start, waits included.",
    "handler_timeout": "How long the handler's code between two steps may run.",
    "max_steps": "How many steps with a body an instance may have in a generation.",
    "max_running": "How many instances workers may hold at the same time; the others stay queued.",
    "search": "Paths of params and output that the search finds by an index.",
    "retention": "How long finished instances are kept.",
    "step_identity": "Whether a second call of the same name is another step, or returns the result of the first.",
    "on_code_change": "What happens to open instances when the handler's source changes.",
    "defaults": "Step options for all steps; those of a call override them.",
}


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its values in words, and whether the code sets another one than the default."""

    name: str
    values: tuple[str, ...]
    meaning: str
    is_set: bool


def options_of(workflow: Workflow[Any, Any]) -> list[Option]:
    """Return the options in the order of the reference. Schedules have a tab of their own."""
    usual = WorkflowOptions()
    return [
        Option(name, tuple(_values(name, workflow)), meaning, _value(name, workflow) != getattr(usual, name))
        for name, meaning in MEANINGS.items()
    ]


def _value(name: str, workflow: Workflow[Any, Any]) -> object:
    return workflow.step_defaults if name == "defaults" else getattr(workflow, name)


def _values(name: str, workflow: Workflow[Any, Any]) -> Iterator[str]:
    match name:
        case "retention":
            rules = workflow.retention
            for status in FINAL_STATUSES:
                yield f"{status}: {_said(getattr(rules, status), none='forever')}"
        case "search":
            yield from workflow.search or ("none",)
        case "defaults":
            yield from [*_step_options(workflow.step_defaults)] or ["none"]
        case _:
            yield _said(getattr(workflow, name), none="no limit")


def _step_options(given: StepOptions) -> Iterator[str]:
    """Yield the step options that differ from the defaults."""
    usual = StepOptions()
    for one in fields(StepOptions):
        value = getattr(given, one.name)
        if value != getattr(usual, one.name) and one.name != "rollback_options":
            yield f"{one.name}: {_said(value, none='none')}"


def _said(value: object, *, none: str) -> str:
    match value:
        case None:
            return none
        case Enum():
            return str(value.value)
        case timedelta():
            return format_duration(value)
        case bool():
            return str(value)
        case int():
            return f"{value:,}"
    return f"{getattr(value, '__name__', 'a function')}()" if callable(value) else str(value)
