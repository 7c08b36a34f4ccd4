"""What can be wrong with a test of a workflow."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import RepriseError


class WorkflowTestError(RepriseError):
    """The test asks for something that cannot be."""


class NotFinishedError(WorkflowTestError, AssertionError):
    """The instance does not come to its end: it waits for what the test does not give it."""

    def __init__(self, instance: str, why: str, advice: str) -> None:
        self.instance = instance
        super().__init__(f"Instance {instance} does not come to its end: {why}. {advice}".strip())


class UnusedError(WorkflowTestError, AssertionError):
    """Something that the test had prepared was never used: a name is misspelt, say, or the code takes another way."""

    def __init__(self, unused: Sequence[str]) -> None:
        self.unused = tuple(unused)
        listed = "; ".join(unused)
        super().__init__(
            f"Prepared and never used: {listed}. Correct it, or say allow_unused=True where that is meant."
        )


class NonDeterministicHandlerError(WorkflowTestError, AssertionError):
    """A replay did not call again what the handler had called before."""

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


def _listed(names: Sequence[str]) -> str:
    return f"step{'s' if len(names) > 1 else ''} {', '.join(names)}"
