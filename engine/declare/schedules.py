"""Schedules as the code declares them: checked at import with their params, so that mistakes are found early."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any

from django.conf import settings

from engine.declare.params import encode_valid
from engine.values.cron import Cron
from engine.values.errors import DeclarationError, RepriseError
from engine.values.identity import check_schedule_name
from engine.values.serialization import Codec

MAX_SCHEDULES = 100  # per workflow

FIELD = "schedules"


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a workflow starts by itself: `@workflow(schedules=[Schedule("0 9 * * 1-5", timezone="Europe/Berlin")])`."""

    expression: str
    """Five cron fields: minute, hour, day of month, month, day of week. See docs/schedules.md for what happens when
    clocks change."""
    _: KW_ONLY
    timezone: str | None = None
    """An IANA name, such as Europe/Berlin. None: the project's TIME_ZONE."""
    params: Any = None
    """The params of each instance, validated at import. None: none, or the type's defaults."""
    name: str | None = None
    """Identifies the schedule within its workflow; its state, such as a pause, belongs to that name. None: the
    expression."""


@dataclass(frozen=True, slots=True)
class DeclaredSchedule:
    """A checked schedule; `params` is the JSON text to store."""

    name: str
    cron: Cron
    params: str


def read_schedules(value: object) -> tuple[Schedule, ...]:
    """Return the given list of schedules or bare expressions. Raises ValueError."""
    given = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else None
    if given is None:
        raise ValueError('It must be a list of cron expressions, such as ["0 9 * * 1-5"], or of Schedule(…).')
    if len(given) > MAX_SCHEDULES:
        raise ValueError(f"It has {len(given):,} entries; the limit is {MAX_SCHEDULES}.")
    wrong = [one for one in given if not isinstance(one, str | Schedule)]
    if wrong:
        raise ValueError(
            f"Each must be a cron expression or a Schedule(…), not of type {type(wrong[0]).__qualname__}."
        )
    return tuple(Schedule(one) if isinstance(one, str) else one for one in given)


def declare(
    what: str, schedules: Sequence[Schedule], *, takes_params: bool, params: Codec
) -> tuple[DeclaredSchedule, ...]:
    """Check the schedules of a workflow. The message of a DeclarationError begins with `what`."""
    declared: dict[str, DeclaredSchedule] = {}
    for schedule in schedules:
        try:
            one = _declared(schedule, takes_params, params)
        except (RepriseError, ValueError) as problem:
            raise DeclarationError(what, FIELD, _about(schedule, str(problem))) from None
        if one.name in declared:
            rule = f'Two schedules are named "{one.name}". Give one another name: Schedule(…, name="…").'
            raise DeclarationError(what, FIELD, rule)
        declared[one.name] = one
    return tuple(declared.values())


def _declared(schedule: Schedule, takes_params: bool, params: Codec) -> DeclaredSchedule:
    zone = settings.TIME_ZONE if schedule.timezone is None else schedule.timezone
    cron = Cron.of(schedule.expression, zone)
    name = check_schedule_name(cron.expression if schedule.name is None else schedule.name)
    return DeclaredSchedule(name, cron, _params(schedule, takes_params, params))


def _params(schedule: Schedule, takes_params: bool, params: Codec) -> str:
    if schedule.params is not None and not takes_params:
        raise ValueError("The workflow takes no params, but the schedule has some. Remove them.")
    if schedule.params is not None:
        return encode_valid(params, schedule.params)
    return _defaults(params) if takes_params else "null"


def _defaults(params: Codec) -> str:
    """Return the params of a schedule that has none: None, or all defaults."""
    nothings: tuple[object, ...] = (None, {})
    for nothing in nothings:
        with suppress(RepriseError):
            return encode_valid(params, nothing)
    raise ValueError("The workflow takes params, but the schedule has none. Add them: Schedule(…, params=…).")


def _about(schedule: Schedule, problem: str) -> str:
    shown = str(schedule.name or schedule.expression)[:100]
    return problem if shown in problem else f'"{shown}": {problem}'
