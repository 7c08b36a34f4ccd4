"""What a step's body learns about its attempt, and the log it writes to."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine.values.errors import ErrorRecord
from engine.values.identity import StepIdentity, idempotency_key
from engine.values.retry import StepOptions


class Say(Protocol):
    def __call__(self, level: str, message: str, fields: dict[str, Any]) -> None: ...


class StepLog:
    """Writes structured lines to the instance's log: `log.info("charged", amount=12)`.

    The Studio shows the lines. Those of a handler are kept once, however often it is replayed. Fields are kept
    as JSON, or else as text.
    """

    def __init__(self, say: Say) -> None:
        self.say = say

    def debug(self, message: str, /, **fields: Any) -> None:
        """Write a line of level debug."""
        self.say("debug", message, fields)

    def info(self, message: str, /, **fields: Any) -> None:
        """Write a line of level info."""
        self.say("info", message, fields)

    def warning(self, message: str, /, **fields: Any) -> None:
        """Write a line of level warning."""
        self.say("warning", message, fields)

    def error(self, message: str, /, **fields: Any) -> None:
        """Write a line of level error. The instance goes on."""
        self.say("error", message, fields)


@dataclass(slots=True)
class StepContext:
    """Facts about one attempt, for the parameter `ctx` of a step's body."""

    attempt: int
    """The number of this attempt, from 1."""
    name: str
    """The step's name."""
    count: int
    """Which step of that name this is among its siblings, from 1."""
    options: StepOptions
    """A copy of the options in force, with durations as timedelta."""
    instance_id: str
    """The id of the instance."""
    workflow: str
    """The name of the workflow."""
    generation: int
    """The generation of the instance, from 1."""
    log: StepLog
    """Writes structured lines to the instance's log."""
    path: tuple[StepIdentity, ...]
    """The identities of the enclosing steps and of this one, outermost first."""
    _event: threading.Event | None = field(default=None, repr=False)
    _is_cancelled: bool = field(default=False, repr=False)
    _keys_from: int | None = field(default=None, repr=False)

    @property
    def cancelled(self) -> threading.Event:
        # Created on first use: few bodies use it, and an Event costs more than the rest of a context.
        """Set when the attempt has timed out or the instance was terminated, so that a sync body can stop."""
        if self._event is None:
            self._event = threading.Event()
        if self._is_cancelled:
            self._event.set()
        return self._event

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancelled` is set."""
        return self._is_cancelled

    def cancel(self) -> None:
        """Set `cancelled`. Called by the engine, possibly while the body's thread first uses the event."""
        self._is_cancelled = True
        if self._event is not None:
            self._event.set()

    @property
    def idempotency_key(self) -> str:
        """A text that is the same on every attempt of this step, in every worker. Another generation has another
        one, unless the restart kept the keys.
        """
        return idempotency_key(self.workflow, self.instance_id, self._keys_from or self.generation, self.path)


@dataclass(slots=True)
class RollbackContext(StepContext):
    """The only argument of a rollback function: the facts of a StepContext, and what the step did. `options` and
    `attempt` are the rollback's own.
    """

    output: Any = None
    """The result of the step, or None if it has none."""
    error: ErrorRecord = ErrorRecord("Error", "")  # noqa: RUF009 - frozen
    """Why the instance ends: `.type`, `.message`, `.details`. The type is "Terminated" if it was terminated."""
    args: tuple[Any, ...] = ()
    """The positional arguments of the step."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """The keyword arguments of the step."""

    @property
    def idempotency_key(self) -> str:
        """A text that is the same on every attempt of this rollback, and different from that of the step."""
        generation = self._keys_from or self.generation
        return idempotency_key(self.workflow, self.instance_id, generation, self.path, "rollback")
