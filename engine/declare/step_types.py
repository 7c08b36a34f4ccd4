"""For type checkers: the options of a step as a call gives them, and the functions that steps accept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Literal, ParamSpec, Protocol, TypedDict, TypeVar, TypeVarTuple

from engine.declare.context import RollbackContext, StepContext

P = ParamSpec("P")
Ts = TypeVarTuple("Ts")
R_co = TypeVar("R_co", covariant=True)
A_contra = TypeVar("A_contra", contravariant=True)
B_contra = TypeVar("B_contra", contravariant=True)
C_contra = TypeVar("C_contra", contravariant=True)

Duration = timedelta | float | str
BackoffName = Literal["exponential", "linear", "constant"]
OnExhaustedName = Literal["fail", "pause"]


class DelayFunction(Protocol):
    """Return the time until the next attempt. The error is of whatever type the body raises."""

    def __call__(self, ctx: StepContext, error: Any, /) -> Duration | Awaitable[Duration]: ...


class RollbackOptionsDict(TypedDict, total=False):
    """The options of a rollback: see `docs/rollback.md`."""

    max_attempts: int
    """How often the function is called at most, the first call included: 1 (no retry) to 1,000."""
    delay: Duration | DelayFunction
    """The wait after the first failed attempt, at most one day; or a function of the StepContext and the error that
    returns the wait, used as it is."""
    backoff: BackoffName
    """How the wait grows with the attempts: `"exponential"` (d, 2d, 4d, …), `"linear"` (d, 2d, 3d, …) or
    `"constant"`."""
    max_delay: Duration
    """The longest wait between two attempts, at most one day. If only `delay` is given and is longer, that counts. What
    a delay function returns is not limited."""
    jitter: float
    """The fraction by which each wait varies at random, 0 to 1: 0.1 means up to 10 % more or less."""
    timeout: Duration
    """How long one attempt may run, up to 365 days. A longer one fails with StepTimeoutError and is retried."""
    atomic: bool
    """Run the function, which must be sync, in one transaction with the record of its completion: its writes to the
    default database happen exactly once. A rollback of an atomic step is atomic too, unless set to False."""


class StepOptionsDict(RollbackOptionsDict, total=False):
    """The options of a step: see `docs/retries.md`. Annotate a dict of options that several steps share with it."""

    once: bool
    """A second call of the same kind and name under the same parent returns the result of the first."""
    sensitive: bool
    """Never display the output, and keep the error text of the step out of signals and logs. The program gets the
    real value."""
    on_exhausted: OnExhaustedName
    """What follows when the attempts are used up: `"fail"`, or `"pause"`, which pauses the instance until somebody
    retries, skips or fails the step. Of a nested step, the step around it decides. See docs/steering.md."""
    rollback: Callable[[RollbackContext], object] | None
    """The function that undoes the step, called with a RollbackContext. See docs/rollback.md."""
    rollback_options: RollbackOptionsDict | None
    """Options of the rollback itself: those marked here. Needs `rollback`."""


# Callers omit `ctx`. Types can remove a first parameter with all that follows it left as it is (names, defaults); of
# those before a later `ctx` only the number and the types are known.
class TakesContext(Protocol[P, R_co]):
    """A function whose first parameter is `ctx`, for calls that also take keyword arguments."""

    def __call__(self, ctx: StepContext, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class ContextFirst(Protocol[*Ts, R_co]):
    """A function whose first parameter is `ctx`, for calls that take positional arguments only."""

    def __call__(self, ctx: StepContext, *args: *Ts) -> R_co: ...


class ContextOnly(Protocol[R_co]):
    """A function that takes nothing but `ctx`, by its name; those below take it last, by position or by name."""

    def __call__(self, *, ctx: StepContext) -> R_co: ...


class ContextSecond(Protocol[A_contra, R_co]):
    def __call__(self, first: A_contra, /, *, ctx: StepContext) -> R_co: ...


class ContextThird(Protocol[A_contra, B_contra, R_co]):
    def __call__(self, first: A_contra, second: B_contra, /, *, ctx: StepContext) -> R_co: ...


class ContextFourth(Protocol[A_contra, B_contra, C_contra, R_co]):
    def __call__(
        self, first: A_contra, second: B_contra, third: C_contra, /, *, ctx: StepContext
    ) -> R_co: ...
