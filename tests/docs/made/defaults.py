"""The options of workflows, steps and starts: what may be given, the default, the meaning."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

from engine.declare.workflow_options import WorkflowOptions
from engine.values.retention_rules import Retention
from engine.values.retry import ROLLBACK_OPTIONS, StepOptions
from tests.docs.made import source
from tests.docs.made.links import OF_API as LINKS
from tests.docs.made.text import cell, code, linked, table

HEADS = ("option", "type", "default", "meaning")


def of_workflow() -> str:
    """List the options of `@workflow`."""
    overload = source.functions_of("engine.decorators", "workflow")[-2]
    types = {one.arg: source.type_of(one.annotation) for one in overload.args.kwonlyargs}
    defaults = WorkflowOptions()
    found = source.fields_of(source.class_of("engine.declare.workflow_options", "WorkflowOptions"))
    rows = [
        (
            code(one.name),
            code(types[one.name]),
            _shown(getattr(defaults, one.name)),
            cell(linked(one.about, LINKS)),
        )
        for one in found
    ]
    return table(HEADS, rows)


def of_step() -> str:
    """List the options of a step, and say which a rollback takes as well."""
    defaults = StepOptions()
    home = "engine.declare.step_types"
    found = [
        one
        for name in ("RollbackOptionsDict", "StepOptionsDict")
        for one in source.fields_of(source.class_of(home, name))
    ]
    rows = [
        (
            code(one.name),
            code(one.type),
            _shown(getattr(defaults, one.name)),
            "yes" if one.name in ROLLBACK_OPTIONS else "",
            cell(linked(one.about, LINKS)),
        )
        for one in found
    ]
    return table(("option", "type", "default", "of a rollback, too", "meaning"), rows)


def of_start() -> str:
    """List the options of a start."""
    home = "engine.declare.batches"
    found = [
        one for name in ("StartOptions", "Origin") for one in source.fields_of(source.class_of(home, name))
    ]
    return table(
        ("option", "type", "meaning"),
        [(code(f.name), code(f.type), cell(linked(f.about, LINKS))) for f in found],
    )


def _shown(value: object) -> str:
    match value:
        case None:
            return "`None`"
        case timedelta():
            return f"`{_short(value)}`"
        case Retention():
            kept = {one.name: _days(getattr(value, one.name)) for one in fields(value)}
            return code(str(kept).replace("'", '"'))
        case StepOptions():
            return "`None`"
        case str():
            return f'`"{value}"`'
        case int() if not isinstance(value, bool) and value >= 10_000:
            return f"`{value:_}`"
    return f"`{value!r}`"


def _short(value: timedelta) -> str:
    seconds = value.total_seconds()
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length and seconds % length == 0:
            return f'"{seconds / length:g}{unit}"'
    return f'"{seconds:g}s"'


def _days(value: timedelta | None) -> str | None:
    return None if value is None else _short(value).strip('"')
