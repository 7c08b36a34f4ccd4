"""How a test refers to steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from engine.declare.defined_step import DefinedStep
from engine.replay.records.history import StepRecord
from engine.testing.errors import WorkflowTestError
from engine.values.states import StepKind

KINDS = (*StepKind, "rollback")


@dataclass(frozen=True, slots=True)
class Target:
    """A step by its name and, if given, by its count, its kind and its enclosing step.

    The items of a map have its name and are counted from 1.
    """

    name: str
    count: int | None = None
    kind: str | None = None
    inside: str | None = None

    @classmethod
    def of(cls, step: object, kind: str | None, inside: str | None) -> Target:
        """Read a test's argument: a name, (name, count), or a step made by `@define_step`."""
        name, count = step if isinstance(step, tuple) and len(step) == 2 else (step, None)
        if isinstance(name, DefinedStep):
            name = name.name
        is_count = count is None or (type(count) is int and count > 0)
        if not isinstance(name, str) or not is_count:
            raise WorkflowTestError(
                f'{step!r} is not a step. Pass its name, as in "charge", or its name and its number among those of '
                'that name, counted from 1, as in ("charge", 2).'
            )
        if kind is not None and kind not in KINDS:
            raise WorkflowTestError(f'"{kind}" is not a kind of step. The kinds are {", ".join(KINDS)}.')
        return cls(name, count, kind, inside)

    def __str__(self) -> str:
        which = "" if self.count is None else f", number {self.count}"
        kind = "" if self.kind is None else f", kind {self.kind}"
        inside = "" if self.inside is None else f', inside "{self.inside}"'
        return f'"{self.name}"{which}{kind}{inside}'

    def fits(self, record: Named, steps: Mapping[int, StepRecord], *, is_rollback: bool = False) -> bool:
        """Return whether it refers to this step or its rollback. `steps` are possible enclosing steps, by number."""
        if record.name != self.name or self.count not in (None, record.count):
            return False
        kind = "rollback" if is_rollback else record.kind
        if is_rollback and self.kind is None:
            return False
        return self.kind in (None, kind) and (self.inside is None or self._is_inside(record, steps))

    def _is_inside(self, record: Named, steps: Mapping[int, StepRecord]) -> bool:
        above = steps.get(record.parent)
        while above is not None:
            if above.name == self.inside:
                return True
            above = steps.get(above.parent)
        return False


class Named(Protocol):
    """A step, as a row or in a cycle."""

    name: str
    kind: str
    count: int
    parent: int


def by_number(cycle: Any) -> dict[int, StepRecord]:
    """Return the steps of a cycle by their number."""
    return {record.seq: record for record in cycle.history.steps.values()}
