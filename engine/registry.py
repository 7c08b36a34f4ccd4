"""Workflows as the code declares them, and where to find them by name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypedDict, TypeVar, Unpack, overload

from engine.between_steps import in_thread
from engine.declared_schedules import DeclaredSchedule, Schedule, declare
from engine.errors import DeclarationError, InvalidNameError, UnknownWorkflowError
from engine.handler import Handler
from engine.identity import check_workflow_name
from engine.messages import Event, ReceivedEvent, declared_events
from engine.params import codec_of
from engine.retention_rules import Retention
from engine.retry import StepOptions
from engine.serialization import Codec
from engine.workflow_options import OnCodeChange, StepIdentityRule, WorkflowOptions

if TYPE_CHECKING:
    from engine.deletion import DeletedMany
    from engine.launch import StartedMany, StartItem
    from engine.models import Instance
    from engine.replay.step import WorkflowStep

__all__ = ["Event", "ReceivedEvent", "Registry", "Workflow", "declared_events", "workflow", "workflows"]

P = TypeVar("P")
R = TypeVar("R")
Fields = Mapping[str, Any]  # params as JSON has them


class Origin(TypedDict, total=False):
    """Who starts an instance and why, for the audit trail."""

    by: object
    reason: str


class StartOptions(Origin, total=False):
    """What may be said about an instance at its start, besides its params."""

    id: str | None
    tags: Iterable[str] | None
    retention: Mapping[str, timedelta | float | str | None] | None


class TagOptions(Origin, total=False):
    tags: Iterable[str] | None


@dataclass(frozen=True, eq=False, repr=False)
class Workflow(Generic[P, R]):
    """A workflow: what `@workflow` makes of a handler. Start instances of it, and find them again."""

    name: str
    description: str
    handler: Callable[..., Coroutine[Any, Any, R]]
    takes_params: bool
    params: Codec
    output: Codec
    timeout: timedelta | None
    handler_timeout: timedelta
    max_steps: int
    max_running: int | None
    schedules: tuple[DeclaredSchedule, ...]
    retention: Retention
    step_identity: StepIdentityRule
    on_code_change: OnCodeChange
    step_defaults: StepOptions
    fingerprint: str
    source: tuple[str, int]

    def __repr__(self) -> str:
        return f"<Workflow {self.name}>"

    @property
    def timeout_or_zero(self) -> timedelta:
        return self.timeout or timedelta()

    def params_schema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of the params; None for a workflow that takes none."""
        return self.params.schema() if self.takes_params else None

    @overload
    def start(self: Workflow[None, R], params: None = None, **options: Unpack[StartOptions]) -> Instance: ...
    @overload
    def start(self, params: P | Fields, **options: Unpack[StartOptions]) -> Instance: ...
    def start(self, params: Any = None, **options: Unpack[StartOptions]) -> Instance:
        """Start an instance: see `engine.launch.start`."""
        from engine import launch

        return launch.start(self, params, **options)

    def start_many(self, items: Iterable[StartItem[P]], **origin: Unpack[Origin]) -> StartedMany:
        """Start many instances in one statement: see `engine.launch.start_many`."""
        from engine import launch

        return launch.start_many(self, items, **origin)

    def get(self, id: str) -> Instance:
        """Return the instance of that id. Raises InstanceNotFoundError."""
        from engine import launch

        return launch.get(self, id)

    @overload
    def get_or_start(
        self: Workflow[None, R], id: str, params: None = None, **options: Unpack[TagOptions]
    ) -> tuple[Instance, bool]: ...
    @overload
    def get_or_start(
        self, id: str, params: P | Fields, **options: Unpack[TagOptions]
    ) -> tuple[Instance, bool]: ...
    def get_or_start(
        self, id: str, params: Any = None, **options: Unpack[TagOptions]
    ) -> tuple[Instance, bool]:
        """Return the instance of that id, started if there was none, and whether this call started it."""
        from engine import launch

        return launch.get_or_start(self, id, params, **options)

    def delete_many(self, ids: Iterable[str], **origin: Unpack[Origin]) -> DeletedMany:
        """Delete up to 100 finished instances: see `engine.deletion.delete_many`."""
        from engine import deletion

        return deletion.delete_many(self, ids, **origin)

    @overload
    async def astart(
        self: Workflow[None, R], params: None = None, **options: Unpack[StartOptions]
    ) -> Instance: ...
    @overload
    async def astart(self, params: P | Fields, **options: Unpack[StartOptions]) -> Instance: ...
    async def astart(self, params: Any = None, **options: Unpack[StartOptions]) -> Instance:
        return await in_thread(self.start)(params, **options)

    async def astart_many(self, items: Iterable[StartItem[P]], **origin: Unpack[Origin]) -> StartedMany:
        return await in_thread(self.start_many)(items, **origin)

    async def adelete_many(self, ids: Iterable[str], **origin: Unpack[Origin]) -> DeletedMany:
        return await in_thread(self.delete_many)(ids, **origin)

    async def aget(self, id: str) -> Instance:
        return await in_thread(self.get)(id)

    @overload
    async def aget_or_start(
        self: Workflow[None, R], id: str, params: None = None, **options: Unpack[TagOptions]
    ) -> tuple[Instance, bool]: ...
    @overload
    async def aget_or_start(
        self, id: str, params: P | Fields, **options: Unpack[TagOptions]
    ) -> tuple[Instance, bool]: ...
    async def aget_or_start(
        self, id: str, params: Any = None, **options: Unpack[TagOptions]
    ) -> tuple[Instance, bool]:
        return await in_thread(self.get_or_start)(id, params, **options)


class Registry(Mapping[str, Workflow[Any, Any]]):
    """The workflows that this process knows, by name. Raises UnknownWorkflowError, which lists near names."""

    def __init__(self) -> None:
        self._workflows: dict[str, Workflow[Any, Any]] = {}

    def __getitem__(self, name: str) -> Workflow[Any, Any]:
        try:
            return self._workflows[name]
        except KeyError:
            raise UnknownWorkflowError(name, self._workflows) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._workflows)

    def __len__(self) -> int:
        return len(self._workflows)

    def codes_that_pause(self) -> dict[str, str]:
        """Return the fingerprints of those workflows whose instances pause under other code, by name."""
        known = self._workflows.values()
        return {one.name: one.fingerprint for one in known if one.on_code_change == "pause"}

    def limits(self) -> dict[str, int]:
        """Return how many instances workers may hold of those workflows that have a limit, by name."""
        known = self._workflows.values()
        return {one.name: one.max_running for one in known if one.max_running is not None}

    def add(self, workflow: Workflow[Any, Any]) -> None:
        """Make a workflow known. Raises DeclarationError if another one has its name."""
        known = self._workflows.setdefault(workflow.name, workflow)
        # The same place is the same declaration: its module failed halfway and is imported a second time.
        if known.source != workflow.source:
            file, line = known.source
            rule = f'The workflow in {file}, line {line}, has it already. Name one of them: @workflow("…").'
            raise DeclarationError(f'Workflow "{workflow.name}"', "name", rule)
        self._workflows[workflow.name] = workflow


workflows = Registry()


class Declare(Protocol):
    """What `@workflow(...)` with options is: a decorator of handlers."""

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
    retention: Mapping[str, timedelta | float | str | None] | None = ...,
    step_identity: StepIdentityRule = "occurrence",
    on_code_change: OnCodeChange = "continue",
    defaults: Mapping[str, object] | None = None,
) -> Declare: ...
def workflow(handler: Any = None, /, **options: Any) -> Any:
    """Declare a workflow: `@workflow` or `@workflow("name", timeout="1 day")` above an `async def`.

    The name is the function's, with `-` for `_`, unless given; the docstring is what the Studio shows. Raises
    DeclarationError for any mistake, here and now.
    """
    if handler is not None and not isinstance(handler, str):
        return _declare(handler, None, options)
    if handler is None:
        handler = options.pop("name", None)
    return lambda function: _declare(function, handler, options)


def _declare(function: object, name: str | None, options: Mapping[str, object]) -> Workflow[Any, Any]:
    handler = Handler.of(function)
    name = _name(handler, name)
    what = f'Workflow "{name}"'
    chosen = WorkflowOptions.of(what, options)
    params = codec_of(handler.params, what=what, field="params")
    schedules = declare(what, chosen.schedules, takes_params=handler.takes_params, params=params)
    declared: Workflow[Any, Any] = Workflow(
        name=name,
        description=handler.description,
        handler=handler.function,
        takes_params=handler.takes_params,
        params=params,
        output=codec_of(handler.output, what=what, field="return type"),
        timeout=chosen.timeout,
        handler_timeout=chosen.handler_timeout,
        max_steps=chosen.max_steps,
        max_running=chosen.max_running,
        schedules=schedules,
        retention=chosen.retention,
        step_identity=chosen.step_identity,
        on_code_change=chosen.on_code_change,
        step_defaults=chosen.defaults,
        fingerprint=handler.fingerprint,
        source=(handler.file, handler.line),
    )
    workflows.add(declared)
    return declared


def _name(handler: Handler, name: str | None) -> str:
    try:
        return check_workflow_name(handler.function.__name__.replace("_", "-") if name is None else name)
    except InvalidNameError as problem:
        what = f"Handler {handler.function.__qualname__}"
        raise DeclarationError(what, "name", str(problem)) from None
