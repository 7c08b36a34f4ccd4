"""Functions with a parameter `ctx`, for type checkers: callers omit it.

If it is the first parameter, the others are checked. Types cannot remove a later parameter, so if it is the second to
fourth, the arguments of a call are not checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from engine.declare.context import StepContext

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class TakesContext(Protocol[P, R_co]):
    """A function whose first parameter is `ctx`."""

    def __call__(self, ctx: StepContext, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class TakesContextSecond(Protocol[R_co]):
    def __call__(self, first: Any, /, *, ctx: StepContext) -> R_co: ...


class TakesContextThird(Protocol[R_co]):
    def __call__(self, first: Any, second: Any, /, *, ctx: StepContext) -> R_co: ...


class TakesContextFourth(Protocol[R_co]):
    def __call__(self, first: Any, second: Any, third: Any, /, *, ctx: StepContext) -> R_co: ...
