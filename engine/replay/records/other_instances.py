"""How a cycle reads and writes of other instances: those that a step starts, and those whose end it waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Origin(NamedTuple):
    """The step that started a child. The child's row names it; the child's id alone proves nothing."""

    generation: int
    seq: int


class Awaited(NamedTuple):
    """The instance whose end a step waits for; with an origin, it must be the child of that step."""

    workflow: str
    id: str
    origin: Origin | None

    def to_json(self) -> dict[str, object]:
        """Return the columns by which the statements look for it."""
        generation, step = self.origin or (None, None)
        return {"workflow": self.workflow, "id": self.id, "of_generation": generation, "of_step": step}


@dataclass(frozen=True, slots=True)
class NewChild:
    """A child that is inserted with the step that starts it. `params` is JSON text."""

    workflow: str
    id: str
    params: str
    code: str
    timeout_us: int | None
    is_tied: bool  # it ends with its parent
    depth: int


@dataclass(frozen=True, slots=True)
class AwaitedState:
    """What the database says about the instance that a step waits for; if it has not ended, only its status.

    `status` is None if there is no such instance, or if it is not the expected child. `is_noted`: the step's instance
    will be told of its end.
    """

    seq: int
    status: str | None
    output: str | None
    error: str | None
    finished_us: int | None
    is_noted: bool
