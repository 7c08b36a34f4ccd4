"""Rows between PostgreSQL and the cycle's records."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from json.encoder import encode_basestring as quote
from typing import Any

from engine.replay.cycle import Cycle
from engine.replay.history import AttemptRecord, EventRecord, History, LogLine, Page, StepRecord
from engine.replay.host import Claimed
from engine.replay.relations import NewChild
from engine.replay.writes import Leave, Writes
from engine.states import AttemptStatus, RollbackState, StepKind, StepStatus

Row = tuple[Any, ...]
LARGE = 4096  # characters of an output that is not worth quoting, and parsing, within the JSON of its row
ROLLBACK = 19  # its place in a row of a step
UNSETTLED = (StepStatus.RUNNING, StepStatus.WAITING)


def claimed(row: Row) -> Claimed:
    return Claimed(*row)


def step(row: Row) -> tuple[int, StepRecord]:
    key, *fields = row
    event_types = 11
    fields[event_types] = tuple(fields[event_types] or ())
    return key, StepRecord(*fields)


def attempt(row: Row) -> tuple[int, AttemptRecord]:
    key, seq, number, worker, started_us, status, alone, phase, finished_us, error = row
    return key, AttemptRecord(seq, number, worker, started_us, status, alone, error, finished_us, phase)


def event(row: Row) -> EventRecord:
    _, *fields, _ = row
    return EventRecord(*fields)


def any_unsettled(steps: Iterable[Row]) -> bool:
    """Tell whether a body, or a rollback, may be unfinished: only then there are attempts to be counted."""
    running = RollbackState.RUNNING
    return any(row[3] == StepKind.DO and (row[6] in UNSETTLED or row[ROLLBACK] == running) for row in steps)


def histories(
    keys: Iterable[int],
    steps: Iterable[Row],
    attempts: Iterable[Row],
) -> dict[int, History]:
    """Sort the rows of several instances into their histories."""
    found = {key: History() for key in keys}
    for row in steps:
        key, record = step(row)
        found[key].add_step(record)
    by_instance: dict[int, list[AttemptRecord]] = {}
    for row in attempts:
        key, record_of_attempt = attempt(row)
        by_instance.setdefault(key, []).append(record_of_attempt)
    for key, records in by_instance.items():
        found[key].add_attempts(records)
    return found


def pages(
    keys: Iterable[int], found: list[Row], as_of_us: int, *, limit: int, limit_bytes: int
) -> dict[int, Page]:
    """Sort events into a page an instance. Where there may be more, none is missing that came before the last one."""
    by_instance: dict[int, list[EventRecord]] = {key: [] for key in keys}
    for row in found:
        by_instance[row[0]].append(event(row))
    full_at = found[-1][0] if found and found[-1][-1] >= limit_bytes else None
    read: dict[int, Page] = {}
    for key, events in by_instance.items():
        is_cut = len(events) >= limit or (full_at is not None and key >= full_at)
        last_us = events[-1].received_us if events else 0
        read[key] = Page(events, last_us if is_cut else as_of_us, is_cut)
    return read


class Batch:
    """The parameters of one flush, made from what several cycles want written."""

    def __init__(self, seat: int) -> None:
        self._seat = seat
        self._cycles: list[str] = []
        self._steps: list[str] = []
        self._attempts: list[str] = []
        self._consumed: list[str] = []
        self._logs: list[str] = []
        self._leaves: list[str] = []
        self._large: list[str] = []
        self._children: list[str] = []
        self._waiters: list[str] = []
        self.concerns_others = False  # there is something about instances other than these cycles'

    def add(self, cycle: Cycle, writes: Writes) -> None:
        key, generation = cycle.claimed.key, cycle.claimed.generation
        ours, whose = {"key": key, "generation": generation}, f'"key":{key},"generation":{generation}'
        ends = writes.leave is not None and writes.leave.is_end
        owes = ',"owes":true' if writes.owes else ""
        self._cycles.append(f'{{"key":{key},"fence":{cycle.claimed.fence},"ends":{_bool(ends)}{owes}}}')
        starting = begun(writes)
        for seq, record in writes.steps.items():
            self._steps.append(_step(whose, record, self._place(record.output), starts=seq in starting))
        for record_of_attempt in writes.attempts.values():
            starts = _belongs_to_a_start(record_of_attempt, starting.get(record_of_attempt.step_seq))
            self._attempts.append(_attempt(whose, record_of_attempt, starts=starts))
        for event_key, seq in writes.consumed.items():
            starts = seq in starting
            self._consumed.append(_object({**ours, "event": event_key, "seq": seq, "starts": starts}))
        self._logs += [_object({**ours, **_line(line)}) for line in writes.logs]
        if writes.concerns_others:
            self._add_others(ours, writes, starting)
        if writes.leave is not None:
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

    def _place(self, output: str | None) -> int:
        """Put a large output beside the rows, and return where, counted from 1; 0 if it may stay in its row."""
        if output is None or len(output) < LARGE:
            return 0
        self._large.append(output)
        return len(self._large)

    def parameters(self) -> dict[str, object]:
        others = {"children": _array(self._children), "waiters": _array(self._waiters)}
        return (others if self.concerns_others else {}) | {
            "seat": self._seat,
            "cycles": _array(self._cycles),
            "steps": _array(self._steps),
            "attempts": _array(self._attempts),
            "consumed": _array(self._consumed),
            "logs": _array(self._logs),
            "leaves": _array(self._leaves),
            "large": self._large,
        }


def begun(writes: Writes) -> dict[int, StepRecord]:
    """Return the steps that begin with this flush, by their number.

    A step that ended in the flush in which it began is left out with its start; one that ended later is not.
    """
    return {
        seq: record
        for seq, record in writes.steps.items()
        if seq in writes.starts and not (record.is_recorded and record.status != StepStatus.RUNNING)
    }


def _belongs_to_a_start(attempt: AttemptRecord, begun: StepRecord | None) -> bool:
    """Tell whether its step counts the attempt only by this start: the attempt that starts, whatever became of it
    since, and a loss that it follows."""
    return begun is not None and (attempt.number == begun.attempts or attempt.status == AttemptStatus.LOST)


# The two hottest rows are put together by hand: a third of the time of json.dumps, which the others use.


def _step(whose: str, r: StepRecord, place: int, *, starts: bool) -> str:
    return (
        f'{{{whose},"seq":{r.seq},"parent":{r.parent},"kind":"{r.kind}","name":{quote(r.name)},"count":{r.count},'
        f'"status":"{r.status}","delivery":{_int(r.delivery)},"options":{_text(r.options)},'
        f'"sensitive":{_bool(r.sensitive)},"attempts":{r.attempts},"lost":{r.lost},'
        f'"event_types":{json.dumps(r.event_types) if r.event_types else "null"},"wake_us":{_int(r.wake_us)},'
        f'"wake_is_fixed":{_bool(r.wake_is_fixed)},"output":{"null" if place else _text(r.output)},'
        f'"large":{place or "null"},"error":{_text(r.error)},"started_us":{r.started_us},'
        f'"finished_us":{_int(r.finished_us)},"rollback":"{r.rollback}","starts":{_bool(starts)}}}'
    )


def _attempt(whose: str, a: AttemptRecord, *, starts: bool) -> str:
    return (
        f'{{{whose},"seq":{a.step_seq},"phase":"{a.phase}","number":{a.number},"status":"{a.status}",'
        f'"worker":{quote(a.worker)},'
        f'"alone":{_bool(a.alone)},"error":{_text(a.error)},"started_us":{a.started_us},'
        f'"finished_us":{_int(a.finished_us)},"starts":{_bool(starts)}}}'
    )


def _line(line: LogLine) -> dict[str, object]:
    return {
        "position": line.position,
        "seq": line.step_seq,
        "attempt": line.attempt,
        "level": line.level,
        "message": line.message,
        "fields": line.fields,
        "at_us": line.at_us,
    }


def _leave(leave: Leave, place: int) -> dict[str, object]:
    return {
        "status": leave.status,
        "waiting_for": leave.waiting_for,
        "wake_us": leave.wake_us,
        "signals": leave.signals,
        "output": None if place else leave.output,
        "large": place or None,
        "error": leave.error,
        "insists": leave.insists,
        "unreached": leave.unreached,
        "rollback": leave.rollback,
        "ends_as": leave.ends_as,
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


def _int(value: int | None) -> str:
    return "null" if value is None else str(value)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _text(value: str | None) -> str:
    return "null" if value is None else quote(value)
