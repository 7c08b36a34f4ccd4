"""The instances that an instance waits for: its children, and others whose end it wants to know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.replay.operation import Operation
from engine.states import WaitingFor

if TYPE_CHECKING:
    from engine.replay.cycle import Cycle


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
class Relative:
    """What the database says of the instance that a step waits for; of one that has not ended, no more than that.

    `status` is None if there is no such instance. `is_noted`: whoever ends it will tell the step's instance.
    """

    seq: int
    status: str | None
    output: str | None
    error: str | None
    finished_us: int | None
    is_noted: bool


class KinOperation(Operation):
    """A call that waits for the end of an instance."""

    waiting_for = WaitingFor.CHILD

    workflow_name: str
    instance_id: str

    def learn(self, found: Relative, as_of_us: int) -> None:
        """Take in what the database said, asked at this time or later."""
        raise NotImplementedError


class Kin:
    """What a cycle waits for among other instances, and whether it knows the latest of them."""

    def __init__(self) -> None:
        self.open: dict[int, KinOperation] = {}  # by seq
        self.is_stale = False
        self.is_asking = False
        self.noting: set[int] = set()  # steps that are to be looked at when their note is committed
        self.as_of_us = 0

    @property
    def is_busy(self) -> bool:
        """Tell whether there will be news without anybody's signal, so that it is too early to park."""
        return self.is_asking or bool(self.noting)

    def look(self, cycle: Cycle) -> None:
        """Ask for news, if there may be any and nobody asks already."""
        if self.is_stale and not self.is_asking and self.question():
            self.is_stale, self.is_asking = False, True
            self.as_of_us = cycle.host.due_us()
            cycle.host.read_kin(cycle)

    def question(self) -> list[KinOperation]:
        """Return the calls to ask for: those that are committed, and with them the children that they started."""
        return [one for one in self.open.values() if one.record.is_recorded]

    def answer(self, cycle: Cycle, found: Iterable[Relative]) -> None:
        """Take in the answer: the instance that ended first comes first."""
        self.is_asking = False
        if not cycle.is_driving:
            self.is_stale = True  # asked again when a pause is withdrawn
            return
        for one in sorted(found, key=lambda one: (one.finished_us or 0, one.seq)):
            operation = self.open.get(one.seq)
            if operation is not None:
                operation.learn(one, self.as_of_us)
        cycle.host.poke(cycle)
