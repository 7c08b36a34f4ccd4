"""The options that type checkers know are those that steps have."""

from __future__ import annotations

from dataclasses import fields

from engine import RollbackOptionsDict, StepOptionsDict
from engine.values.retry import ROLLBACK_OPTIONS, StepOptions


def test_types_know_every_option_of_a_step_and_of_a_rollback() -> None:
    assert sorted(StepOptionsDict.__annotations__) == sorted(one.name for one in fields(StepOptions))
    assert sorted(RollbackOptionsDict.__annotations__) == sorted(ROLLBACK_OPTIONS)
