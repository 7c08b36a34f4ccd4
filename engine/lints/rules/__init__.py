"""The lint rules, one file per rule or family. Each yields its findings in the code of one workflow."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.lints.code import Code
from engine.lints.finding import Found
from engine.lints.rules import (
    bare_except,
    duplicate_names,
    endless_waits,
    long_durations,
    moving,
    mutations,
    not_awaited,
    side_effects,
    unknown_workflows,
)

Rule = Callable[[Code], Iterator[Found]]

RULES: tuple[Rule, ...] = (
    unknown_workflows.find,
    duplicate_names.find,
    moving.find_in_names,
    moving.find_between_steps,
    side_effects.find,
    mutations.find_outside_state,
    mutations.find_changed_params,
    not_awaited.find,
    bare_except.find,
    long_durations.find,
    endless_waits.find,
)
