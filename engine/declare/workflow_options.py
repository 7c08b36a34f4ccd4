"""The options of `@workflow`: read once, at import. An error names the option and its rule."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Literal, cast

from engine.declare.schedules import Schedule, read_schedules
from engine.values.durations import parse_duration
from engine.values.errors import DeclarationError, StepConfigError
from engine.values.retention_rules import DEFAULT_RETENTION, Retention
from engine.values.retry import StepOptions
from engine.values.search_paths import read_search_paths

MAX_STEPS = 100_000
MAX_RUNNING = 100_000

StepIdentityRule = Literal["occurrence", "name"]
OnCodeChange = Literal["continue", "pause"]


@dataclass(frozen=True, slots=True)
class WorkflowOptions:
    timeout: timedelta | None = None
    """How long an instance may take from its start, waits included. After that it ends as errored with
    WorkflowTimeoutError, and its rollbacks run. None: no limit."""
    handler_timeout: timedelta = timedelta(minutes=5)
    """How long the handler's code between two steps may run; bodies do not count. After that the instance ends as
    errored with WorkflowTimeoutError."""
    max_steps: int = 10_000
    """How many steps with a body an instance may have in a generation, 1 to 100,000. Sleeps and waits do not count.
    One more raises LimitError."""
    max_running: int | None = None
    """How many instances workers may hold at the same time, 1 to 100,000; the others stay `queued`. An instance
    that parks makes room. None: no limit."""
    schedules: tuple[Schedule, ...] = ()
    """When instances start by themselves: cron expressions or Schedule objects, at most 100. See
    docs/schedules.md."""
    search: tuple[str, ...] = ()
    """Paths of params and output that the search finds by an index, such as `"customer.id"`, `"items.0.sku"` or
    `"output.total"`: at most 20. See docs/writing-a-workflow.md."""
    retention: Retention = DEFAULT_RETENTION
    """How long finished instances are kept, by final status. A status that is left out keeps its default; None as a
    value, or for all, means forever."""
    step_identity: StepIdentityRule = "occurrence"
    """`"occurrence"`: a second call of the same kind and name is another step. `"name"`: it returns the result of
    the first."""
    on_code_change: OnCodeChange = "continue"
    """What happens to open instances when the handler's source changes. `"continue"`: they go on with the new code.
    `"pause"`: each is paused before its next new step."""
    defaults: StepOptions = field(default_factory=StepOptions)
    """Step options for all steps of the workflow; a call's own options override them."""

    @classmethod
    def of(cls, what: str, given: Mapping[str, object]) -> WorkflowOptions:
        """Check the given options. The message of a DeclarationError begins with `what`."""
        values: dict[str, Any] = {}
        for option, value in given.items():
            if option not in _READERS:
                raise DeclarationError(what, option, _unknown(option))
            try:
                values[option] = _READERS[option](value)
            except ValueError as problem:
                raise DeclarationError(what, option, str(problem)) from None
        return cls(**values)


def _unknown(option: str) -> str:
    near = difflib.get_close_matches(option, _READERS, n=1)
    hint = f' Did you mean "{near[0]}"?' if near else ""
    known = ", ".join(["name", *(field.name for field in fields(WorkflowOptions))])
    return f"There is no such option.{hint} A workflow takes {known}."


def _timeout(value: object) -> timedelta | None:
    return None if value is None else _positive(value)


def _positive(value: object) -> timedelta:
    duration = parse_duration(cast(Any, value), what="timeout")
    if not duration:
        raise ValueError("It must be longer than 0: otherwise nothing could end in time.")
    return duration


def _max_steps(value: object) -> int:
    if type(value) is not int or not 1 <= value <= MAX_STEPS:
        raise ValueError(f"It must be an integer from 1 to {MAX_STEPS:,}.")
    return value


def _max_running(value: object) -> int | None:
    if value is not None and (type(value) is not int or not 1 <= value <= MAX_RUNNING):
        raise ValueError(f"It must be an integer from 1 to {MAX_RUNNING:,}, or None for no limit.")
    return value


def _step_identity(value: object) -> StepIdentityRule:
    if value not in ("occurrence", "name"):
        raise ValueError('It must be "occurrence" or "name".')
    return value


def _on_code_change(value: object) -> OnCodeChange:
    if value not in ("continue", "pause"):
        raise ValueError('It must be "continue" or "pause".')
    return value


def _defaults(value: object) -> StepOptions:
    if value is None:
        return StepOptions()
    if not isinstance(value, Mapping) or not all(isinstance(option, str) for option in value):
        raise ValueError('It must be a dict of step options, such as {"max_attempts": 3}.')
    try:
        return StepOptions.make("step option", **value)
    except StepConfigError as problem:
        raise ValueError(str(problem)) from None


_READERS = {
    "timeout": _timeout,
    "handler_timeout": _positive,
    "max_steps": _max_steps,
    "max_running": _max_running,
    "schedules": read_schedules,
    "search": read_search_paths,
    "retention": DEFAULT_RETENTION.with_,
    "step_identity": _step_identity,
    "on_code_change": _on_code_change,
    "defaults": _defaults,
}
