"""A map: a step that owns one `do` for each of its items.

The row of the map has no results. They are collected from the items when the map is delivered, so a map of ten thousand
items costs what its items cost. An item is identified by its index. Only the outcome of the map reaches the handler.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from engine.replay.attempts import functions
from engine.replay.attempts.bodies import DoOperation
from engine.replay.calls.call import Call
from engine.replay.operations.operation import Operation
from engine.replay.records import outcomes
from engine.replay.records.history import StepRecord
from engine.replay.state import CycleState
from engine.values.errors import NonDeterminismError
from engine.values.identity import StepIdentity
from engine.values.retry import StepOptions
from engine.values.serialization import Codec, Stored
from engine.values.states import StepKind, StepStatus, WaitingFor


@dataclass(frozen=True, slots=True)
class Work:
    """What a call does, and how: `fn(*args)` for each of `items`."""

    operation: str  # map, for_each or batch
    items: Sequence[tuple[Any, ...]]
    fn: Callable[..., Any]
    options: StepOptions
    codec: Codec
    concurrency: int
    batch_size: int | None = None

    def to_json(self) -> str:
        recorded: dict[str, object] = {
            "operation": self.operation,
            "items": len(self.items),
            "concurrency": self.concurrency,
        }
        if self.batch_size is not None:
            recorded["batch_size"] = self.batch_size
        return json.dumps(recorded)


class MapOperation(Operation):
    """A call of `step.map`, `step.for_each` or `step.batch`.

    At most `concurrency` items are under way at any time. An item that backs off is among them, so the instance parks
    when all of them do. After one item has failed for good, no other begins. Those under way continue to their end,
    including further attempts; then the map fails with the first error.
    """

    waiting_for = WaitingFor.RETRY

    def __init__(self, cycle: CycleState, record: StepRecord, work: Work) -> None:
        super().__init__(cycle, record, self._value)
        self.work = work
        self._begun: dict[int, ItemOperation] = {}  # under way, by step
        self._lived: dict[int, Stored] = {}  # values of live outcomes, by index
        self._next = 0  # index of the first item that may not have begun
        self._concurrency = work.concurrency
        self._failed: StepRecord | None = None

    # As an operation

    def begin(self) -> None:
        if not self.record.is_recorded:
            self.record.options = self.work.to_json()
            self.record.sensitive = self.work.options.sensitive
            self.cycle.record(self.record)
        recorded = self._recorded
        if recorded["items"] != len(self.work.items):
            self.cycle.pause_with_reason(self._has_other_items(recorded["items"]))
            return
        self._concurrency = recorded["concurrency"]
        self._go_on()
        self._begin_more()
        self._conclude_if_done()

    def inner(self) -> Iterator[StepRecord]:
        return self.cycle.history.beneath(self.record.seq)

    def _items(self) -> Iterator[StepRecord]:
        for index in range(self._recorded["items"]):
            record = self.cycle.history.steps.get(self._identity(index))
            if record is not None:
                yield record

    # As an owner

    @property
    def has_failed(self) -> bool:
        return self._failed is not None

    def settled(self, operation: Call) -> None:
        record = operation.record
        self._begun.pop(record.seq, None)
        if operation.live is not None:
            self._lived[record.count - 1] = operation.live
        if record.status == StepStatus.ERRORED:
            self._failed = self._failed or record
        if not self.cycle.is_ending:
            self._begin_more()
            self._conclude_if_done()

    # Items

    def _go_on(self) -> None:
        """Read what is recorded of the items, and continue those that are under way."""
        failed = []
        for record in self._items():
            if record.status == StepStatus.ERRORED:
                failed.append(record)
            elif not record.is_final:
                self._begun[record.seq] = self.item(record)
        if failed:
            self._failed = min(failed, key=lambda record: (record.finished_us or 0, record.seq))
        for item in list(self._begun.values()):
            self.cycle.start(item)

    def _begin_more(self) -> None:
        while self._failed is None and self._next < len(self.work.items):
            if len(self._begun) >= self._concurrency:
                return
            identity = self._identity(self._next)
            self._next += 1
            if identity not in self.cycle.history.steps:
                self._begin_first(StepRecord(0, *identity, is_recorded=False))

    def _begin_first(self, record: StepRecord) -> None:
        self.cycle.history.add_step(record)
        self.cycle.number(record)
        item = self._begun[record.seq] = self.item(record)
        self.cycle.start(item)

    def _conclude_if_done(self) -> None:
        if self._begun or self.record.is_final:
            return
        if self._failed is not None:
            self.cycle.conclude(self, error=self._failed.error)
        elif self._next == len(self.work.items):
            self.cycle.conclude(self, output=str(len(self.work.items)))

    def call_of(self, record: StepRecord) -> ItemOperation | None:
        return self.item(record) if record.count <= len(self.work.items) else None

    def item(self, record: StepRecord) -> ItemOperation:
        """Return the operation of a recorded item."""
        work = self.work
        options = functions.options_in_force(record, work.options)
        return ItemOperation(
            self.cycle, record, work.fn, work.items[record.count - 1], {}, options, work.codec, owner=self
        )

    def _identity(self, index: int) -> StepIdentity:
        return StepIdentity(self.record.seq, StepKind.DO, self.record.name, index + 1)

    # What is recorded

    @property
    def _recorded(self) -> dict[str, Any]:
        recorded: dict[str, Any] = json.loads(self.record.options or '{"items": 0}')
        return recorded

    def _value(self, text: str) -> list[Any] | None:
        recorded = self._recorded
        # If its name alone is its identity, a second call gets the result of the first.
        is_once = self.work.options.once or self.cycle.identities.is_by_name
        if not is_once and (recorded["operation"], recorded["items"]) != (
            self.work.operation,
            len(self.work.items),
        ):
            before = f"{recorded['operation']} of {recorded['items']:,} items"
            raise ValueError(
                f"A {before} is recorded, and the handler calls a {self.work.operation} of {len(self.work.items):,}."
            )
        if self.work.operation != "map":
            return None
        return [self._value_of(record) for record in self._items()]

    def _value_of(self, record: StepRecord) -> Any:
        lived = self._lived.get(record.count - 1)
        if lived is not None:
            return lived.value
        try:
            return self.work.codec.decode(record.output or "null")
        except Exception as error:  # noqa: BLE001 - the types are the user's
            cause = None if record.sensitive else error
            raise outcomes.output_refused(record, error, self.item(record).label) from cause

    def _has_other_items(self, recorded: int) -> NonDeterminismError:
        current = len(self.work.items)
        return NonDeterminismError(
            f'Map "{self.record.name}" was begun with another number of items than the handler gives it now. Items '
            "are known by their index: take them from the params or from the result of a step.",
            recorded=f"{recorded:,} items",
            current=f"{current:,} items",
        )


class ItemOperation(DoOperation):
    """The step of one item."""

    @property
    def is_called_off(self) -> bool:
        # Another item failed while a pause, an instance that runs alone, or the flush delayed its start.
        return self.map.has_failed and self.record.attempts == 1

    @property
    def map(self) -> MapOperation:
        assert isinstance(self.owner, MapOperation)
        return self.owner

    @property
    def label(self) -> str:
        return f"{self.record.name}[{self.record.count - 1}]"
