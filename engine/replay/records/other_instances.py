"""How a cycle reads and writes of other instances: those that a step starts, and those whose end it waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Origin(NamedTuple):
    """The step of an instance that has started a child. The child's row names it; its id alone proves nothing."""

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
    """What the database says of the instance that a step waits for; of one that has not ended, no more than that.

    `status` is None if there is no such instance, or if it is not the child that is meant. `is_noted`: whoever ends it
    will tell the step's instance.
    """

    seq: int
    status: str | None
    output: str | None
    error: str | None
    finished_us: int | None
    is_noted: bool
