"""Errors of a test of a workflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.values.errors import RepriseError


class WorkflowTestError(RepriseError):
    """The test asks for something impossible.

    Correct the test as the message says.
    """


class NotFinishedError(WorkflowTestError, AssertionError):
    """The instance does not end: it waits for something that the test does not provide.

    Provide what the message names: send the event, answer the request, or force the timeout. Call `run` if the wait
    is what you test.
    """

    def __init__(self, instance: str, why: str, advice: str) -> None:
        self.instance = instance
        super().__init__(f"Instance {instance} does not end: {why}. {advice}".strip())


class NotCompleteError(WorkflowTestError, AssertionError):
    """The instance has ended, but not as complete: `error` is the recorded error.

    Read the traceback in the message. Call `run_to_end` if the failure is what you test.
    """

    def __init__(self, instance: str, status: str, error: Mapping[str, Any] | None) -> None:
        self.instance = instance
        self.status = status
        self.error = error
        trace = (error or {}).get("traceback") or ""
        super().__init__(f"{ended(instance, status, error)}\n\n{trace}".strip())


class UnusedError(WorkflowTestError, AssertionError):
    """Something that the test prepared was never used: a name is misspelt, or the code takes another path.

    Correct the name, or remove what is not needed. Pass `allow_unused=True` if it may remain unused.
    """

    def __init__(self, unused: Sequence[str], how_it_stands: str = "") -> None:
        self.unused = tuple(unused)
        listed = "; ".join(unused)
        said = (
            f"Prepared and never used: {listed}. Correct it, or pass allow_unused=True if that is intended."
        )
        super().__init__(f"{said} {how_it_stands}".strip())


class NonDeterministicHandlerError(WorkflowTestError, AssertionError):
    """A replay did not repeat a call of the handler: code between steps decided differently.

    Get what may change (the time, random numbers, what is read from outside) from a step, or from `step.now()`,
    `step.uuid4()` and `step.random`.
    """

    def __init__(self, instance: str, missing: Sequence[str], instead: Sequence[str]) -> None:
        self.instance = instance
        self.missing = tuple(missing)
        self.instead = tuple(instead)
        called = f" It called {_listed(instead)} instead." if instead else ""
        super().__init__(
            f"The handler of instance {instance} is not deterministic: a replay did not call {_listed(missing)}, "
            f"which an earlier run had called.{called} Code between steps must make the same decisions every time: get "
            "what may change (the time, random numbers, what is read from outside) from a step."
        )


def ended(instance: str, status: str, error: Mapping[str, Any] | None) -> str:
    """Return a sentence about how an instance ended, and at which step."""
    if error is None:
        return f"Instance {instance} is {status}."
    step = f' at step "{error["step"]}"' if error.get("step") else ""
    return f"Instance {instance} is {status}{step}: {error.get('type')}: {error.get('message')}"


def _listed(names: Sequence[str]) -> str:
    return f"step{'s' if len(names) > 1 else ''} {', '.join(names)}"
