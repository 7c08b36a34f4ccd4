"""The facts behind the status line of an instance: plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A step that has started and not ended."""

    seq: int
    name: str
    kind: str
    is_waiting: bool
    started_at: datetime
    wake_at: datetime | None = None
    attempts: int = 0
    max_attempts: int | None = None
    lost: int = 0  # of the attempts, with their workers
    uncounted: int = 0  # lost or drained attempts, which do not count towards max_attempts
    event_types: tuple[str, ...] = ()
    worker: str = ""
    error: str = ""
    is_exhausted: bool = False  # its attempts are used up, and nobody has decided yet what follows
    is_asking: bool = False  # a request that can still be answered
    asked_of: tuple[str, ...] = ()
    message: str = ""
    relative: str = ""  # the id of the instance that it waits for
    is_child: bool = False  # and whether the step has started it
    branches: int = 0  # of a parallel
    left: int = 0  # of these, that have not ended

    @property
    def counted(self) -> int:
        return self.attempts - self.uncounted


@dataclass(frozen=True, slots=True)
class Rollback:
    """The progress of the rollbacks. `step` is the one being undone, or the one that could not be undone."""

    state: str  # running, complete or failed
    ends_as: str = ""
    undone: int = 0
    of: int = 0
    step: OpenStep | None = None


@dataclass(frozen=True, slots=True)
class LastAction:
    """The last action of a person on the instance, and its reason."""

    actor: str
    at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """The pause of the workflow, of an instance that was not released."""

    by: str
    at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Servers:
    """The live workers that serve a workflow, their slots, and how many slots hold an instance.

    `is_full`: every slot of every worker is taken. `is_starting`: there is no worker yet, but a new cluster.
    """

    count: int = 0
    slots: int = 0
    held: int = 0
    is_full: bool = False
    is_starting: bool = False
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """The limit of a workflow, and how many of its instances workers hold."""

    limit: int
    held: int

    @property
    def is_full(self) -> bool:
        return self.held >= self.limit


@dataclass(frozen=True, slots=True)
class StatusFacts:
    """All facts behind the sentence."""

    status: str
    waiting_for: str
    workflow: str
    now: datetime
    created_at: datetime
    began_at: datetime | None = None  # the generation
    finished_at: datetime | None = None
    paused_at: datetime | None = None
    wake_at: datetime | None = None
    starts_at: datetime | None = None  # of one that was started for later and has not run
    servers: Servers = Servers()
    capacity: Capacity | None = None  # of a workflow with max_running
    hold: Hold | None = None  # of an instance that has not ended
    steps: Sequence[OpenStep] = ()
    steps_complete: int = 0
    last_action: LastAction | None = None
    error: dict[str, object] | None = field(default=None)
    pause_reason: dict[str, object] | None = None  # of the engine
    rollback: Rollback | None = None

    def without_relatives(self) -> StatusFacts:
        """Return the facts without the ids of the instances that it waits for, for readers who must not learn them."""
        return replace(self, steps=[replace(step, relative="") for step in self.steps])
