"""The decorator `@workflow`, with its types."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import timedelta
from typing import Any, Protocol, TypeVar, overload

from engine.declare.registry import Workflow, declare_workflow
from engine.declare.schedules import Schedule
from engine.declare.step_types import StepOptionsDict
from engine.declare.workflow_options import OnCodeChange, StepIdentityRule
from engine.replay.step.workflow_step import WorkflowStep

P = TypeVar("P")
R = TypeVar("R")


class Declare(Protocol):
    """The decorator of handlers that `@workflow(...)` with options returns."""

    @overload
    def __call__(self, handler: Callable[[WorkflowStep], Coroutine[Any, Any, R]], /) -> Workflow[None, R]: ...
    @overload
    def __call__(self, handler: Callable[[WorkflowStep, P], Coroutine[Any, Any, R]], /) -> Workflow[P, R]: ...


@overload
def workflow(handler: Callable[[WorkflowStep], Coroutine[Any, Any, R]], /) -> Workflow[None, R]: ...
@overload
def workflow(handler: Callable[[WorkflowStep, P], Coroutine[Any, Any, R]], /) -> Workflow[P, R]: ...
@overload
def workflow(
    name: str | None = None,
    *,
    timeout: timedelta | float | str | None = None,
    handler_timeout: timedelta | float | str = "5m",
    max_steps: int = 10_000,
    max_running: int | None = None,
    schedules: Iterable[str | Schedule] = (),
    search: Iterable[str] = (),
    retention: Mapping[str, timedelta | float | str | None] | None = ...,
    step_identity: StepIdentityRule = "occurrence",
    on_code_change: OnCodeChange = "continue",
    defaults: StepOptionsDict | None = None,
) -> Declare: ...
def workflow(handler: Any = None, /, **options: Any) -> Any:
    """Declare a workflow: `@workflow` or `@workflow("name", timeout="1 day")` above an `async def`.

    The handler takes `step`, a WorkflowStep, and at most one typed second argument, the params. Its return type is
    that of the output. Both may be anything that pydantic validates.

    The name is the function's, with `-` for `_`, unless given; the docstring is what the Studio shows. Returns the
    Workflow, which starts instances. Raises DeclarationError at once for any mistake.
    """
    if handler is not None and not isinstance(handler, str):
        return declare_workflow(handler, None, options)
    if handler is None:
        handler = options.pop("name", None)
    return lambda function: declare_workflow(function, handler, options)
