"""The instances that an instance waits for: its children, and others whose end it wants to know."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from engine.replay.operation import Operation
from engine.states import StepKind, WaitingFor

if TYPE_CHECKING:
    from engine.replay.cycle import Cycle
    from engine.replay.history import StepRecord

RUN, SPAWN = "run_workflow", "spawn"  # the calls that start a child, as the step's row says


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


class RelationOperation(Operation):
    """A call that waits for the end of an instance."""

    waiting_for = WaitingFor.CHILD

    workflow_name: str
    instance_id: str

    @property
    def origin(self) -> Origin | None:
        """Return the step whose child it must be; None where any instance of that name is meant."""
        raise NotImplementedError

    @property
    def whom(self) -> Awaited:
        return Awaited(self.workflow_name, self.instance_id, self.origin)

    def learn(self, found: AwaitedState, as_of_us: int) -> None:
        """Take in what the database said, asked at this time or later."""
        raise NotImplementedError


class Relations:
    """What a cycle waits for among other instances, and whether it knows the latest of them."""

    def __init__(self) -> None:
        self.open: dict[int, RelationOperation] = {}  # by seq
        self.is_stale = False
        self.is_asking = False
        self.noting: set[int] = set()  # steps that are to be looked at when their note is committed
        self.as_of_us = 0
        self._children: dict[tuple[str, str], Origin] | None = None  # once it is asked for

    def started(self, cycle: Cycle, workflow: str, id: str) -> Origin | None:
        """Return the step of this cycle's instance that has started the instance of that name, if one has."""
        if self._children is None:
            steps = cycle.history.steps.values()
            self._children = dict(_children(steps, cycle.claimed.generation))
        return self._children.get((workflow, id))

    def starts(self, workflow: str, id: str, origin: Origin) -> None:
        """Take in that a step begins now, and starts a child."""
        if self._children is not None:
            self._children[workflow, id] = origin

    @property
    def is_busy(self) -> bool:
        """Tell whether there will be news without anybody's signal, so that it is too early to park."""
        return self.is_asking or bool(self.noting)

    def look(self, cycle: Cycle) -> None:
        """Ask for news, if there may be any and nobody asks already."""
        if self.is_stale and not self.is_asking and self.question():
            self.is_stale, self.is_asking = False, True
            self.as_of_us = cycle.host.due_us()
            cycle.host.read_relations(cycle)

    def question(self) -> list[RelationOperation]:
        """Return the calls to ask for: those that are committed, and with them the children that they started."""
        return [one for one in self.open.values() if one.record.is_recorded]

    def answer(self, cycle: Cycle, found: Iterable[AwaitedState]) -> None:
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


def _children(steps: Iterable[StepRecord], generation: int) -> Iterator[tuple[tuple[str, str], Origin]]:
    for record in steps:
        if record.kind == StepKind.CHILD and record.options is not None:
            said = json.loads(record.options)
            if said.get("operation", RUN) in (RUN, SPAWN):
                # A restart may have kept the step: its child was started in the generation in which it ran.
                yield (said["workflow"], said["id"]), Origin(record.kept_from or generation, record.seq)
