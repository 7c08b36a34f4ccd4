"""After a flush whose answer was lost: read from the rows whether it was committed, before it is written again.

Most of it may be written twice: steps, attempts, consumed events and the handler's log lines overwrite themselves, and
an instance that has left has no owner, so later writes are refused. There are two exceptions: a recorded start must not
be dropped because of a pause requested since, and log lines of bodies cannot be distinguished from their copies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from engine.replay.cycle import Cycle
from engine.replay.records.history import StepRecord
from engine.replay.records.writes import Writes
from engine.values.states import StepStatus


def parameters(worker_id: int, batch: Iterable[tuple[Cycle, Writes]]) -> dict[str, object]:
    """Return the parameters of `flush_sql.RECORDED`."""
    cycles, starts, lines = list[object](), list[object](), list[object]()
    for cycle, writes in batch:
        key = cycle.claimed.key
        cycles.append({"key": key, "fence": cycle.claimed.fence})
        starts += [
            {"key": key, "seq": seq, "attempts": record.attempts}
            for seq, record in writes.settle_starts().items()
        ]
        lines += [
            {
                "key": key,
                "seq": line.step_seq,
                "attempt": line.attempt,
                "message": line.message,
                "at_us": line.at_us,
            }
            for line in writes.logs
            if line.position is None
        ]
    texts = (json.dumps(one, ensure_ascii=False) for one in (cycles, starts, lines))
    return {"worker_id": worker_id, **dict(zip(("cycles", "starts", "lines"), texts, strict=True))}


def settle(writes: Writes, *, has_starts: bool, has_lines: bool) -> None:
    """Drop from the writes what is recorded. All of a kind is recorded or nothing: it was one statement."""
    if has_lines:
        writes.logs = [line for line in writes.logs if line.position is not None]
    if has_starts:
        begun = writes.settle_starts()
        for record in writes.steps.values():
            record.is_recorded = True
        _drop_what_runs(writes, begun)
        told, writes.then = writes.then, []
        writes.starts.clear()
        for then in told:
            then(False)


def _drop_what_runs(writes: Writes, begun: dict[int, StepRecord]) -> None:
    """Drop starts that are recorded. Written again, they might overwrite the end of an atomic body."""
    for seq, record in begun.items():
        if record.status == StepStatus.RUNNING:
            del writes.steps[seq]
            writes.attempts.pop((seq, record.attempts), None)
