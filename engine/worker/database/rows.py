"""Convert between PostgreSQL's rows and the records of cycles."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from typing import Any, NamedTuple

from engine.replay.cycle import Cycle
from engine.replay.records.history import History, Page
from engine.replay.records.other_instances import NewChild
from engine.replay.records.writes import Leave, Writes
from engine.values.fingerprint import Failed
from engine.values.records import ATTEMPT, EVENT, LOG, STEP, AttemptRecord, EventRecord, StepRecord
from engine.values.states import AttemptStatus

Row = tuple[Any, ...]
LARGE = 4096  # characters: a larger output is sent apart from the JSON of its row, where it would be quoted and parsed


class Held(NamedTuple):
    """The state of a held instance: a row of `sql.HELD`."""

    key: int
    fence: int
    status: str
    signals: int
    ends_as: str
    is_to_leave: bool  # its workflow is paused


class Answer(NamedTuple):
    """The answer of a flush for an instance: a row of `flush_sql.FLUSH`."""

    key: int
    is_ours: bool
    status: str
    signals: int
    ends_as: str
    has_left: bool
    notify_pending: bool
    now_us: int


# Split a row into the key of its instance and its record.
step = STEP.reader()
attempt = ATTEMPT.reader()
event = EVENT.reader()

_write_step = STEP.writer()
_write_attempt = ATTEMPT.writer()
_write_line = LOG.writer()


def histories(keys: Iterable[int], steps: Iterable[Row]) -> dict[int, History]:
    """Return the histories of several instances from the rows of their steps."""
    found = {key: History() for key in keys}
    for row in steps:
        key, record = step(row)
        found[key].add_step(record)
    return found


def any_unsettled(histories: dict[int, History]) -> bool:
    """Return whether there are attempts to count."""
    return any(record.is_unsettled for one in histories.values() for record in one.steps.values())


def add_attempts(histories: dict[int, History], attempts: Iterable[Row]) -> None:
    """Add the attempts of unsettled steps."""
    by_instance: dict[int, list[AttemptRecord]] = {}
    for row in attempts:
        key, record = attempt(row)
        by_instance.setdefault(key, []).append(record)
    for key, records in by_instance.items():
        histories[key].add_attempts(records)


def pages(
    keys: Iterable[int], found: list[Row], as_of_us: int, *, limit: int, limit_bytes: int
) -> dict[int, Page]:
    """Sort events into one page per instance. If there may be more, they are all newer than the last one."""
    by_instance: dict[int, list[EventRecord]] = {key: [] for key in keys}
    full_at = None
    for so_far, *row in found:
        key, record = event(row)
        by_instance[key].append(record)
        full_at = key if so_far >= limit_bytes else None
    read: dict[int, Page] = {}
    for key, events in by_instance.items():
        is_cut = len(events) >= limit or (full_at is not None and key >= full_at)
        last_us = events[-1].received_us if events else 0
        read[key] = Page(events, last_us if is_cut else as_of_us, is_cut)
    return read


class Batch:
    """The parameters of one flush, made from the writes of several cycles."""

    def __init__(self, worker_id: int) -> None:
        self._worker_id = worker_id
        self._cycles: list[str] = []
        self._steps: list[str] = []
        self._attempts: list[str] = []
        self._consumed: list[str] = []
        self._logs: list[str] = []
        self._leaves: list[str] = []
        self._large: list[str] = []
        self.failures: dict[str, Failed] = {}  # what the fingerprints stand for
        self._children: list[str] = []
        self._waiters: list[str] = []
        self.concerns_others = False  # whether it concerns other instances than those of the cycles

    def add(self, cycle: Cycle, writes: Writes) -> None:
        key, generation = cycle.claimed.key, cycle.claimed.generation
        ours, whose = {"key": key, "generation": generation}, f'"key":{key},"generation":{generation}'
        ends = writes.leave is not None and writes.leave.is_end
        notify_pending = ',"notify_pending":true' if writes.notify_pending else ""
        self._cycles.append(
            f'{{"key":{key},"fence":{cycle.claimed.fence},"ends":{_bool(ends)}{notify_pending}}}'
        )
        starting = writes.settle_starts()
        for seq, record in writes.steps.items():
            place = self._place(record.output)
            head = f'{whose},"starts":{_bool(seq in starting)}'
            self._steps.append(_write_step(head, record, place, is_new=not record.is_recorded))
        for record_of_attempt in writes.attempts.values():
            starts = _belongs_to_a_start(record_of_attempt, starting.get(record_of_attempt.step_seq))
            self._attempts.append(_write_attempt(f'{whose},"starts":{_bool(starts)}', record_of_attempt))
            self._note(record_of_attempt.failed)
        for event_key, seq in writes.consumed.items():
            self._consumed.append(_object({**ours, "event": event_key, "seq": seq}))
        self._logs += [_write_line(whose, line) for line in writes.logs]
        if writes.concerns_others:
            self._add_others(ours, writes, starting)
        if writes.leave is not None:
            self._note(writes.leave.failed)
            place = self._place(writes.leave.output)
            self._leaves.append(_object({"key": key, **_leave(writes.leave, place)}))

    def _add_others(self, ours: dict[str, int], writes: Writes, starting: Container[int]) -> None:
        self.concerns_others = True
        for seq, child in writes.children.items():
            place = self._place(child.params)
            self._children.append(
                _object({**ours, "seq": seq, "starts": seq in starting, **_child(child, place)})
            )
        for seq, other in writes.waiters.items():
            self._waiters.append(_object({**ours, "seq": seq, **other.to_json(), "starts": seq in starting}))

    def _note(self, failed: Failed | None) -> None:
        if failed is not None:  # of an attempt before that of an end, which is the same group
            self.failures.setdefault(failed.fingerprint, failed)

    def _place(self, output: str | None) -> int:
        """Store a large output next to the rows and return its place, from 1; 0 if it stays in its row."""
        if output is None or len(output) < LARGE:
            return 0
        self._large.append(output)
        return len(self._large)

    @property
    def is_of_steps(self) -> bool:
        """Return whether it contains only steps and attempts."""
        return not (self.concerns_others or self._consumed or self._logs or self._leaves)

    def parameters(self) -> dict[str, object]:
        others = {"children": _array(self._children), "waiters": _array(self._waiters)}
        return (others if self.concerns_others else {}) | {
            "worker_id": self._worker_id,
            "cycles": _array(self._cycles),
            "steps": _array(self._steps),
            "attempts": _array(self._attempts),
            "consumed": _array(self._consumed),
            "logs": _array(self._logs),
            "leaves": _array(self._leaves),
            "large": self._large,
        }


def _belongs_to_a_start(attempt: AttemptRecord, begun: StepRecord | None) -> bool:
    """Return whether its step counts the attempt only by this start: the attempt that starts, whatever became of it
    since, and a loss that it follows."""
    return begun is not None and (attempt.number == begun.attempts or attempt.status == AttemptStatus.LOST)


def _leave(leave: Leave, place: int) -> dict[str, object]:
    return {
        "status": leave.status,
        "waiting_for": leave.waiting_for,
        "wake_us": leave.wake_us,
        "signals": leave.signals,
        "output": None if place else leave.output,
        "large": place or None,
        "error": leave.error,
        "pause_reason": leave.pause_reason,
        "unreached": leave.unreached,
        "rollback": leave.rollback,
        "ends_as": leave.ends_as,
        "fingerprint": leave.fingerprint if leave.failed is None else leave.failed.fingerprint,
    }


def _child(child: NewChild, place: int) -> dict[str, object]:
    return {
        "workflow": child.workflow,
        "id": child.id,
        "params": None if place else child.params,
        "large": place or None,
        "code": child.code,
        "timeout_us": child.timeout_us,
        "is_tied": child.is_tied,
        "depth": child.depth,
    }


def _array(items: list[str]) -> str:
    return f"[{','.join(items)}]"


def _object(fields: dict[str, object]) -> str:
    return json.dumps(fields, ensure_ascii=False)


def _bool(value: bool) -> str:
    return "true" if value else "false"
