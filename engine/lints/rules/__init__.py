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
    moving_names,
    moving_values,
    mutated_params,
    not_awaited,
    outside_state,
    side_effects,
    unknown_workflows,
)

Rule = Callable[[Code], Iterator[Found]]

RULES: tuple[Rule, ...] = (
    unknown_workflows.find,
    duplicate_names.find,
    moving_names.find,
    moving_values.find,
    side_effects.find,
    outside_state.find,
    mutated_params.find,
    not_awaited.find,
    bare_except.find,
    long_durations.find,
    endless_waits.find,
)
