"""What a test prepares: mocks, timeouts, events, answers and crashes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.declare.registry import Workflow
from engine.models import Instance
from engine.testing import giving
from engine.testing.crashes import Crash, Crashes
from engine.testing.giving import Gifts, Given
from engine.testing.mocks import NOTHING, Mock, Mocks
from engine.testing.targets import Target


class Preparing:
    """All of it holds through crashes and restarts, each thing until it is used up."""

    _instance: Instance | None

    def __init__(self) -> None:
        self._mocks = Mocks()
        self._crashes = Crashes()
        self._gifts = Gifts()

    def mock(
        self,
        step: object,
        *,
        result: Any = NOTHING,
        error: BaseException | type[BaseException] | None = None,
        call: Callable[..., Any] | None = None,
        times: int | None = None,
        kind: str | None = None,
        inside: str | None = None,
        allow_unused: bool = False,
    ) -> None:
        """Let this come of the step instead of its body: a result, an error, or what the function `call` returns.

        `step` is a name, (name, count), or a step made by `@define_step`; with `kind="rollback"` it is its rollback
        that is meant, with `inside` only where it stands within the step of that name. A workflow in its place is
        mocked wherever it is started. `times` counts attempts: then comes the next mock, and at last the real body.
        A result is recorded as the body's would be: one that does not fit the step's type fails it.
        """
        if isinstance(step, Workflow):
            what = f"mock of workflow {step.name}"
            self._mocks.add_of_workflow(
                step.name, Mock(what, None, result, error, call, times, allow_unused=allow_unused)
            )
        else:
            target = Target.of(step, kind, inside)
            what = f"mock of {target}"
            self._mocks.add(Mock(what, target, result, error, call, times, allow_unused=allow_unused))

    def force_timeout(
        self,
        step: object,
        *,
        times: int = 1,
        kind: str | None = None,
        inside: str | None = None,
        allow_unused: bool = False,
    ) -> None:
        """Let the next attempts at a step time out, their bodies not run; or let a wait reach its deadline."""
        target = Target.of(step, kind, inside)
        what = f"force_timeout of {target}"
        self._mocks.add(Mock(what, target, times=times, allow_unused=allow_unused, is_timeout=True))

    def send_event(
        self, type: Any, payload: Any = None, dedup_key: str | None = None, *, by: object = None
    ) -> None:
        """Send the instance an event: now, or as soon as it is started."""
        self._give(giving.event(type, payload, dedup_key, by))

    def answer(self, request: str, value: Any, *, by: object = "test", comment: str = "") -> None:
        """Answer the request of that name: now, or as soon as it is asked."""
        self._give(giving.answer(request, value, by, comment))

    def crash_before(
        self,
        step: object,
        *,
        attempt: int | None = None,
        kind: str | None = None,
        inside: str | None = None,
        stay_down: bool = False,
    ) -> None:
        """Let the worker die, once, before the body begins; its attempt is recorded, and becomes `lost`.

        Of a step that has no body nothing is recorded then. Another worker goes on; with `stay_down` the next `run`.
        """
        target = Target.of(step, kind, inside)
        self._crashes.add(Crash(target, is_after=False, attempt=attempt, stay_down=stay_down))

    def crash_after(
        self,
        step: object,
        *,
        attempt: int | None = None,
        kind: str | None = None,
        inside: str | None = None,
        stay_down: bool = False,
    ) -> None:
        """Let the worker die, once, when the body or the wait has ended, and that is not recorded yet.

        An `atomic` step has recorded its end by itself, with what it wrote: only its turn is lost.
        """
        target = Target.of(step, kind, inside)
        self._crashes.add(Crash(target, is_after=True, attempt=attempt, stay_down=stay_down))

    def _give(self, given: Given) -> None:
        if self._instance is not None:
            given.is_given = given.give(self._instance)
        self._gifts.add(given)

    @property
    def _unused(self) -> list[str]:
        return [*self._mocks.unused(), *self._crashes.unused(), *self._gifts.unused()]
