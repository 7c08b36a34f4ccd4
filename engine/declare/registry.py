"""Workflows as the code declares them, and the registry that finds them by name."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, Unpack, overload

from engine.declare.batches import (
    DeletedMany,
    Fields,
    Origin,
    StartedMany,
    StartItem,
    StartOptions,
    TagOptions,
)
from engine.declare.handler import Handler
from engine.declare.messages import Event, ReceivedEvent, declared_events
from engine.declare.params import codec_of
from engine.declare.schedules import DeclaredSchedule, declare
from engine.declare.workflow_options import OnCodeChange, StepIdentityRule, WorkflowOptions
from engine.values.between_steps import async_twin, in_thread
from engine.values.errors import DeclarationError, InvalidNameError, UnknownWorkflowError
from engine.values.identity import check_workflow_name
from engine.values.retention_rules import Retention
from engine.values.retry import StepOptions
from engine.values.serialization import Codec
from engine.values.system import is_system

if TYPE_CHECKING:
    from engine.models import Instance

__all__ = [
    "Event",
    "ReceivedEvent",
    "Registry",
    "Workflow",
    "declare_workflow",
    "declared_events",
    "workflows",
]

P = TypeVar("P")
R = TypeVar("R")


class Steering(Protocol):
    """The functions behind the methods of a workflow: `engine.steer.methods`, set when Django starts."""

    def start(
        self, workflow: Workflow[Any, Any], params: Any, **options: Unpack[StartOptions]
    ) -> Instance[Any]: ...
    def start_many(
        self, workflow: Workflow[Any, Any], items: Iterable[StartItem[Any]], **origin: Unpack[Origin]
    ) -> StartedMany: ...
    def get(self, workflow: Workflow[Any, Any], id: str) -> Instance[Any]: ...
    def get_or_start(
        self, workflow: Workflow[Any, Any], id: str, params: Any, **options: Unpack[TagOptions]
    ) -> tuple[Instance[Any], bool]: ...
    def delete_many(
        self, workflow: Workflow[Any, Any], ids: Iterable[str], **origin: Unpack[Origin]
    ) -> DeletedMany: ...


@dataclass(frozen=True, eq=False, repr=False)
class Workflow(Generic[P, R]):
    """A workflow, made from a handler by `@workflow`. Starts and finds its instances."""

    name: str
    """The name, by which commands, URLs and rows refer to it."""
    description: str
    """The docstring of the handler."""
    handler: Callable[..., Coroutine[Any, Any, R]]
    """The function below `@workflow`."""
    takes_params: bool
    """Whether the handler has a second argument."""
    params: Codec
    output: Codec
    timeout: timedelta | None
    """Its option of `@workflow`."""
    handler_timeout: timedelta
    """Its option of `@workflow`."""
    max_steps: int
    """Its option of `@workflow`."""
    max_running: int | None
    """Its option of `@workflow`."""
    schedules: tuple[DeclaredSchedule, ...]
    """Its schedules, checked."""
    search: tuple[str, ...]
    """The paths of its option, in full: each begins with `params` or `output`."""
    retention: Retention
    """Its option of `@workflow`."""
    step_identity: StepIdentityRule
    """Its option of `@workflow`."""
    on_code_change: OnCodeChange
    """Its option of `@workflow`."""
    step_defaults: StepOptions
    """The step options that `defaults` sets."""
    fingerprint: str
    """Identifies the source of the handler; each instance records the one it started under."""
    source: tuple[str, int]
    """The file and the line of the handler."""

    steering: ClassVar[Steering]

    def __repr__(self) -> str:
        return f"<Workflow {self.name}>"

    @property
    def timeout_or_zero(self) -> timedelta:
        return self.timeout or timedelta()

    def params_schema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of the params, or None if the workflow takes none."""
        return self.params.schema() if self.takes_params else None

    @overload
    def start(
        self: Workflow[None, R], params: None = None, **options: Unpack[StartOptions]
    ) -> Instance[R]: ...
    @overload
    def start(self, params: P | Fields, **options: Unpack[StartOptions]) -> Instance[R]: ...
    def start(self, params: Any = None, **options: Unpack[StartOptions]) -> Instance[R]:
        """Start an instance and return it. In a transaction, it starts when the transaction commits.

        With `at`, an aware datetime within 365 days, it stays queued until then, and its timeout counts from then.

        Raises InstanceExistsError for an id in use, and for invalid input InvalidNameError, InvalidParamsError,
        InvalidValueError or LimitError; then nothing is written. In a handler it raises BetweenStepsError.
        """
        return self.steering.start(self, params, **options)

    def start_many(self, items: Iterable[StartItem[P]], **origin: Unpack[Origin]) -> StartedMany[R]:
        """Start up to 10,000 instances in one statement. Invalid items and ids in use are reported in the
        StartedMany, not fatal.

        Raises LimitError for too many items, or for more than 64 Mi characters of params in total; then nothing is
        written.
        """
        return self.steering.start_many(self, items, **origin)

    def get(self, id: str) -> Instance[R]:
        """Return the instance with that id. Raises InstanceNotFoundError, also for an invalid id."""
        return self.steering.get(self, id)

    @overload
    def get_or_start(
        self: Workflow[None, R], id: str, params: None = None, **options: Unpack[TagOptions]
    ) -> tuple[Instance[R], bool]: ...
    @overload
    def get_or_start(
        self, id: str, params: P | Fields, **options: Unpack[TagOptions]
    ) -> tuple[Instance[R], bool]: ...
    def get_or_start(
        self, id: str, params: Any = None, **options: Unpack[TagOptions]
    ) -> tuple[Instance[R], bool]:
        """Return the instance with that id, started if there was none, and whether this call started it.

        An existing instance is returned as it is, whatever its params and `at`. For invalid input, raises what `start`
        raises: InvalidNameError, InvalidParamsError, InvalidValueError or LimitError.
        """
        return self.steering.get_or_start(self, id, params, **options)

    def delete_many(self, ids: Iterable[str], **origin: Unpack[Origin]) -> DeletedMany:
        """Delete up to 100 finished instances, with all they recorded. Those that cannot be deleted are reported in
        the DeletedMany, not fatal.

        Raises LimitError for more, or for no ids, and InvalidNameError for an invalid id; then nothing is deleted.
        """
        return self.steering.delete_many(self, ids, **origin)

    @overload
    async def astart(
        self: Workflow[None, R], params: None = None, **options: Unpack[StartOptions]
    ) -> Instance[R]: ...
    @overload
    async def astart(self, params: P | Fields, **options: Unpack[StartOptions]) -> Instance[R]: ...
    async def astart(self, params: Any = None, **options: Unpack[StartOptions]) -> Instance[R]:
        """Start an instance, from async code: see `start`."""
        return await in_thread(self.start)(params, **options)

    astart_many = async_twin(start_many)

    adelete_many = async_twin(delete_many)

    aget = async_twin(get)

    @overload
    async def aget_or_start(
        self: Workflow[None, R], id: str, params: None = None, **options: Unpack[TagOptions]
    ) -> tuple[Instance[R], bool]: ...
    @overload
    async def aget_or_start(
        self, id: str, params: P | Fields, **options: Unpack[TagOptions]
    ) -> tuple[Instance[R], bool]: ...
    async def aget_or_start(
        self, id: str, params: Any = None, **options: Unpack[TagOptions]
    ) -> tuple[Instance[R], bool]:
        """Return or start an instance, from async code: see `get_or_start`."""
        return await in_thread(self.get_or_start)(id, params, **options)


class Registry(Mapping[str, Workflow[Any, Any]]):
    """The workflows declared in this process, by name: `workflows["ship-order"]`. A mapping, so `in`, `get`, `len`
    and iteration work. An unknown name raises UnknownWorkflowError, which lists similar names.

    The workflows of Reprise itself are not in it: nobody starts them by name.
    """

    def __init__(self) -> None:
        self._workflows: dict[str, Workflow[Any, Any]] = {}
        self._system: dict[str, Workflow[Any, Any]] = {}

    def __getitem__(self, name: str) -> Workflow[Any, Any]:
        try:
            return self._workflows[name]
        except KeyError:
            raise UnknownWorkflowError(name, self._workflows) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._workflows)

    def __len__(self) -> int:
        return len(self._workflows)

    @property
    def served(self) -> Mapping[str, Workflow[Any, Any]]:
        """All workflows whose instances this process can run: with those of Reprise itself."""
        return ChainMap(self._workflows, self._system)

    def codes_that_pause(self) -> dict[str, str]:
        """Return the fingerprints, by name, of the workflows whose instances pause when their code changes."""
        known = self._workflows.values()
        return {one.name: one.fingerprint for one in known if one.on_code_change == "pause"}

    def limits(self) -> dict[str, int]:
        """Return how many instances workers may hold, by name, of the workflows that have a limit."""
        known = self._workflows.values()
        return {one.name: one.max_running for one in known if one.max_running is not None}

    def add(self, workflow: Workflow[Any, Any]) -> None:
        """Register a workflow. Raises DeclarationError if another one has its name."""
        home = self._system if is_system(workflow.name) else self._workflows
        known = home.setdefault(workflow.name, workflow)
        # The same place is the same declaration: its module failed halfway and is being imported again.
        if known.source != workflow.source:
            file, line = known.source
            rule = f'The workflow in {file}, line {line}, already has this name. Rename one of them: @workflow("…").'
            raise DeclarationError(f'Workflow "{workflow.name}"', "name", rule)
        home[workflow.name] = workflow


workflows = Registry()


def declare_workflow(function: object, name: str | None, options: Mapping[str, object]) -> Workflow[Any, Any]:
    """Declare the handler below `@workflow`. Raises DeclarationError."""
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
        search=chosen.search,
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
    if name is not None and is_system(name) and handler.function.__module__.startswith("engine."):
        return name
    try:
        return check_workflow_name(handler.function.__name__.replace("_", "-") if name is None else name)
    except InvalidNameError as problem:
        what = f"Handler {handler.function.__qualname__}"
        raise DeclarationError(what, "name", str(problem)) from None
