"""The page of states: what each means, from where it is entered and to where it is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial

from engine.values import states
from engine.values.states import AttemptStatus, InstanceStatus, StepStatus
from tests.docs.made import source
from tests.docs.made.actions import actions
from tests.docs.made.text import cell, code, table

HOME = "engine.values.states"
ENUMS: Mapping[str, type[StrEnum]] = {
    "instance": states.InstanceStatus,
    "waiting-for": states.WaitingFor,
    "step": states.StepStatus,
    "attempt": states.AttemptStatus,
    "kind": states.StepKind,
    "rollback": states.RollbackState,
    "event": states.EventState,
}
Changes = Mapping[tuple[StrEnum, StrEnum], str]
TRANSITIONS: Mapping[type[StrEnum], tuple[Mapping[StrEnum, str], Changes]] = {
    InstanceStatus: (states.BEGINNINGS, states.CHANGES),
    StepStatus: (states.STEP_BEGINNINGS, states.STEP_CHANGES),
    AttemptStatus: (states.ATTEMPT_BEGINNINGS, states.ATTEMPT_CHANGES),
}


def meanings(name: str) -> str:
    """List the values of an enumeration."""
    enum = ENUMS[name]
    about = {one.name: one.about for one in source.fields_of(source.class_of(HOME, enum.__name__))}
    return table(
        ("value", "meaning"),
        [(code(value.value) or "(empty)", cell(about[value.name])) for value in enum],
    )


def transitions(name: str) -> str:
    """List the transitions between the statuses, with their causes."""
    beginnings, changes = TRANSITIONS[ENUMS[name]]
    rows = [("(new)", code(status.value), why) for status, why in beginnings.items()]
    rows += [(code(before.value), code(after.value), why) for (before, after), why in changes.items()]
    return table(("from", "to", "cause"), rows)


SECTIONS: Mapping[str, Callable[[], str]] = {
    **{f"states:{name}": partial(meanings, name) for name in ENUMS},
    **{f"transitions:{name}": partial(transitions, name) for name in ("instance", "step", "attempt")},
    "actions": actions,
}
