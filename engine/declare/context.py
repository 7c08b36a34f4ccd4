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
    """Writes structured lines to the instance's log: `log.info("charged", amount=12)`."""

    def __init__(self, say: Say) -> None:
        self.say = say

    def debug(self, message: str, /, **fields: Any) -> None:
        self.say("debug", message, fields)

    def info(self, message: str, /, **fields: Any) -> None:
        self.say("info", message, fields)

    def warning(self, message: str, /, **fields: Any) -> None:
        self.say("warning", message, fields)

    def error(self, message: str, /, **fields: Any) -> None:
        self.say("error", message, fields)


@dataclass(slots=True)
class StepContext:
    """Facts about one attempt, for the parameter `ctx` of a step's body.

    `attempt` counts from 1; `cancelled` is set when the attempt has timed out or the instance was terminated, so
    that a sync body can stop; `idempotency_key` is the same on every attempt of this step, in every worker.
    """

    attempt: int
    name: str
    count: int
    options: StepOptions
    instance_id: str
    workflow: str
    generation: int
    log: StepLog
    path: tuple[StepIdentity, ...]
    _event: threading.Event | None = field(default=None, repr=False)
    _is_cancelled: bool = field(default=False, repr=False)

    @property
    def cancelled(self) -> threading.Event:
        # Created on first use: few bodies use it, and an Event costs more than the rest of a context.
        if self._event is None:
            self._event = threading.Event()
        if self._is_cancelled:
            self._event.set()
        return self._event

    @property
    def is_cancelled(self) -> bool:
        return self._is_cancelled

    def cancel(self) -> None:
        """Set `cancelled`. Called by the engine, possibly while the body's thread first uses the event."""
        self._is_cancelled = True
        if self._event is not None:
            self._event.set()

    @property
    def idempotency_key(self) -> str:
        return idempotency_key(self.workflow, self.instance_id, self.generation, self.path)


@dataclass(slots=True)
class RollbackContext(StepContext):
    """The only argument of a rollback function.

    `output` is the value of the step, or None; `error` is why the instance ends (`.type`, `.message`, `.details`; of
    type "Terminated" if it was terminated); `args` and `kwargs` are those of the step; `options`, `attempt` and
    `idempotency_key` are the rollback's own.
    """

    output: Any = None
    error: ErrorRecord = ErrorRecord("Error", "")  # noqa: RUF009 - frozen
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def idempotency_key(self) -> str:
        return idempotency_key(self.workflow, self.instance_id, self.generation, self.path, "rollback")
