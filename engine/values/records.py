"""The records of an instance, one class per table: each field that is a column declares how it is stored.

Times are whole microseconds since the epoch, on the database's clock: they survive a round trip to PostgreSQL
unchanged, as `step.now()` requires. JSON is kept as text; None means SQL NULL.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

from engine.values.columns import (
    BIGINT,
    BOOL,
    CHANGES,
    COPIED_ONLY,
    INTEGER,
    JSON,
    LARGE_JSON,
    TEXT,
    TEXTS,
    TIME,
    Table,
)
from engine.values.fingerprint import Failed
from engine.values.identity import StepIdentity
from engine.values.retry import RETRIED_AFTER
from engine.values.states import FINAL_STEPS, AttemptPhase, AttemptStatus, RollbackState, StepKind, StepStatus

UNSETTLED = (StepStatus.RUNNING, StepStatus.WAITING)


@dataclass(slots=True)
class StepRecord:
    """One row of `engine_step`."""

    seq: Annotated[int, INTEGER]
    parent: Annotated[int, INTEGER]
    kind: Annotated[str, TEXT]
    name: Annotated[str, TEXT]
    count: Annotated[int, INTEGER]
    status: Annotated[str, TEXT, CHANGES] = StepStatus.RUNNING
    delivery: Annotated[int | None, INTEGER, CHANGES] = None
    options: Annotated[str | None, JSON] = None
    sensitive: Annotated[bool, BOOL] = False
    attempts: Annotated[int, INTEGER, CHANGES] = 0
    lost: Annotated[int, INTEGER, CHANGES] = 0
    event_types: Annotated[tuple[str, ...], TEXTS] = ()
    wake_us: Annotated[int | None, TIME, CHANGES] = None
    wake_is_fixed: Annotated[bool, BOOL] = False
    output: Annotated[str | None, LARGE_JSON, CHANGES] = None
    error: Annotated[str | None, JSON, CHANGES] = None
    started_us: Annotated[int, TIME] = 0
    finished_us: Annotated[int | None, TIME, CHANGES] = None
    rollback: Annotated[str, TEXT, CHANGES] = ""
    # The generation in which it ran, if a restart kept it.
    kept_from: Annotated[int | None, INTEGER, COPIED_ONLY] = None

    # Not stored:
    is_recorded: bool = True
    is_nested: bool = False  # called by a body: it begins even while a pause is requested
    spent: int = 0  # attempts that count towards max_attempts
    crashes: int = 0  # losses while it was in quarantine
    stands: bool = False  # its body has recorded the outcome; only its delivery is written here

    @property
    def identity(self) -> StepIdentity:
        return StepIdentity(self.parent, self.kind, self.name, self.count)

    @property
    def is_final(self) -> bool:
        return self.status in FINAL_STEPS

    @property
    def is_exhausted(self) -> bool:
        """Return whether its attempts are used up and nobody has decided yet what follows (`on_exhausted="pause"`)."""
        return self.error is not None and self.status == StepStatus.WAITING

    @property
    def retried_after(self) -> int:
        """The number of attempts when a person last gave it new ones; earlier ones do not count."""
        if self.options is None or RETRIED_AFTER not in self.options:
            return 0
        number: int = json.loads(self.options).get(RETRIED_AFTER, 0)  # that of its rollback is not meant
        return number

    @property
    def is_unsettled(self) -> bool:
        """Return whether its body or its rollback may be unfinished: only then are there attempts to count."""
        return self.kind == StepKind.DO and (
            self.status in UNSETTLED or self.rollback == RollbackState.RUNNING
        )

    @property
    def is_to_be_undone(self) -> bool:
        """Return whether it was started and recorded with a rollback."""
        return self.attempts > 0 and self.kind == StepKind.DO and '"rollback"' in (self.options or "")


@dataclass(slots=True)
class AttemptRecord:
    """One row of `engine_attempt`."""

    step_seq: Annotated[int, INTEGER]
    number: Annotated[int, INTEGER]
    worker: Annotated[str, TEXT]
    started_us: Annotated[int, TIME]
    status: Annotated[str, TEXT, CHANGES] = AttemptStatus.RUNNING
    # Nothing ran beside it, for its instance is in quarantine: if its worker dies, that counts as a crash.
    quarantined: Annotated[bool, BOOL, CHANGES] = False
    error: Annotated[str | None, JSON, CHANGES] = None
    finished_us: Annotated[int | None, TIME, CHANGES] = None
    phase: Annotated[str, TEXT] = AttemptPhase.DO
    fingerprint: Annotated[str | None, TEXT, CHANGES] = None
    failed_us: Annotated[int | None, TIME, CHANGES] = None

    # Not stored:
    failed: Failed | None = None  # what its fingerprint stands for


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A buffered event: the part of a row of `engine_event` that a cycle reads."""

    key: Annotated[int, BIGINT]
    type: Annotated[str, TEXT]
    payload: Annotated[str, JSON]
    sent_by: Annotated[str, TEXT]
    received_us: Annotated[int, TIME]


@dataclass(frozen=True, slots=True)
class LogLine:
    """A row of `engine_log`; `position` is set for the handler's, `step_seq` and `attempt` for a body's."""

    level: Annotated[str, TEXT]
    message: Annotated[str, TEXT]
    fields: Annotated[str | None, JSON]
    at_us: Annotated[int, TIME]
    position: Annotated[int | None, INTEGER] = None
    step_seq: Annotated[int | None, INTEGER] = None
    attempt: Annotated[int | None, INTEGER] = None


STEP = Table(StepRecord)
ATTEMPT = Table(AttemptRecord)
EVENT = Table(EventRecord)
LOG = Table(LogLine)
