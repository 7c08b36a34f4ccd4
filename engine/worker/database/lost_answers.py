"""A flush whose answer was lost: whether it was committed is asked of the rows, before it is written again.

Most of it may be written twice. Steps and attempts are written over by themselves, consumed events and the handler's
lines too; an instance that has left is nobody's any more, so what comes after is refused. Two things are not: a start
that is recorded must not be left out because of a pause that was asked for since, and the lines of bodies have nothing
that tells one from its copy.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from engine.replay.cycle import Cycle
from engine.replay.history import StepRecord
from engine.replay.writes import Writes
from engine.values.states import StepStatus
from engine.worker.database import rows


def parameters(worker_id: int, batch: Iterable[tuple[Cycle, Writes]]) -> dict[str, object]:
    """Return the parameters of `sql.RECORDED`."""
    cycles, starts, lines = list[object](), list[object](), list[object]()
    for cycle, writes in batch:
        key = cycle.claimed.key
        cycles.append({"key": key, "fence": cycle.claimed.fence})
        starts += [
            {"key": key, "seq": seq, "attempts": record.attempts}
            for seq, record in rows.begun(writes).items()
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
    """Take as written what is recorded; all of a kind is, or nothing: they went in one statement."""
    if has_lines:
        writes.logs = [line for line in writes.logs if line.position is not None]
    if has_starts:
        begun = rows.begun(writes)
        for record in writes.steps.values():
            record.is_recorded = True
        _drop_what_runs(writes, begun)
        told, writes.then = writes.then, []
        writes.starts.clear()
        for then in told:
            then(False)


def _drop_what_runs(writes: Writes, begun: dict[int, StepRecord]) -> None:
    """What has begun and runs is recorded as it is. Written again, it might come after an atomic body has ended."""
    for seq, record in begun.items():
        if record.status == StepStatus.RUNNING:
            del writes.steps[seq]
            writes.attempts.pop((seq, record.attempts), None)
