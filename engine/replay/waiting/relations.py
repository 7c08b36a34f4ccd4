"""The other instances that an instance waits for, its children among them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Protocol

from engine.replay.records.history import History, StepRecord
from engine.replay.records.other_instances import Awaited, AwaitedState, Origin
from engine.values.states import StepKind

RUN, SPAWN = "run_workflow", "spawn"  # the calls that start a child, as the step's row says


class Awaiting(Protocol):
    """A call that waits for the end of an instance."""

    record: StepRecord

    @property
    def whom(self) -> Awaited:
        """The instance that it waits for."""

    def learn(self, found: AwaitedState, as_of_us: int) -> None:
        """Handle what the database said when asked at this time or later."""


class Relations:
    """The calls that wait for other instances, and whether their latest state is known."""

    def __init__(self, history: History, generation: int) -> None:
        self._history, self._generation = history, generation
        self._open: dict[int, Awaiting] = {}  # by seq
        self._noting: set[int] = set()  # steps to ask about when their note is committed
        self._is_stale = False
        self._is_asking = False
        self._as_of_us = 0
        self._children: dict[tuple[str, str], Origin] | None = None  # once needed

    # Children

    def started(self, workflow: str, id: str) -> Origin | None:
        """Return the step of this instance that started that instance, if one did."""
        if self._children is None:
            self._children = dict(_children(self._history.steps.values(), self._generation))
        return self._children.get((workflow, id))

    def starts(self, workflow: str, id: str, origin: Origin) -> None:
        """Note that a step that begins now starts a child."""
        if self._children is not None:
            self._children[workflow, id] = origin

    # Waiting

    def add(self, seq: int, call: Awaiting) -> None:
        self._open[seq] = call

    def remove(self, seq: int) -> None:
        """Remove a call that is over, if it is open."""
        self._open.pop(seq, None)

    def note(self, seq: int) -> None:
        """Note that the database is being told what this step waits for."""
        self._noting.add(seq)

    def noted(self, seq: int, *, has_begun: bool) -> None:
        """Note that the database was told, or that a pause left that out."""
        self._noting.discard(seq)
        self._is_stale = self._is_stale or has_begun

    def expire(self) -> None:
        """Ask again, because what is known may be outdated."""
        self._is_stale = True

    # Asking

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def is_busy(self) -> bool:
        """Tell whether an answer is still expected, so that it is too early to park."""
        return self._is_asking or bool(self._noting)

    @property
    def question(self) -> list[Awaiting]:
        """The calls to ask about: those that are committed, and so are the children that they started."""
        return [one for one in self._open.values() if one.record.is_recorded]

    @property
    def is_to_ask(self) -> bool:
        """Tell whether there may be news that nobody is asking for yet."""
        return self._is_stale and not self._is_asking and bool(self.question)

    def ask(self, now_us: int) -> None:
        """Note that the question is asked now."""
        self._is_stale, self._is_asking = False, True
        self._as_of_us = now_us

    def answer(self, found: Iterable[AwaitedState]) -> None:
        """Handle the answer, beginning with the instance that ended first."""
        self._is_asking = False
        for one in sorted(found, key=lambda one: (one.finished_us or 0, one.seq)):
            call = self._open.get(one.seq)
            if call is not None:
                call.learn(one, self._as_of_us)

    def drop_answer(self) -> None:
        """Ignore an answer that came while the handler is not driven, and ask again later."""
        self._is_asking = False
        self._is_stale = True


def _children(steps: Iterable[StepRecord], generation: int) -> Iterator[tuple[tuple[str, str], Origin]]:
    for record in steps:
        if record.kind == StepKind.CHILD and record.options is not None:
            said = json.loads(record.options)
            if said.get("operation", RUN) in (RUN, SPAWN):
                # A restart may have kept the step: its child was started in the generation in which it ran.
                yield (said["workflow"], said["id"]), Origin(record.kept_from or generation, record.seq)
