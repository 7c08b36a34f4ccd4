"""The preparations of a test: mocks, timeouts, events, answers and crashes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.declare.registry import Workflow
from engine.models import Instance, Step
from engine.steer import requests
from engine.testing.crashes import Crash, Crashes
from engine.testing.mocks import NOTHING, Mock, Mocks
from engine.testing.targets import Target


class Preparing:
    """Preparations outlive crashes and restarts, each until it is used up."""

    _instance: Instance | None

    def __init__(self) -> None:
        self._mocks = Mocks()
        self._crashes = Crashes()
        self._inputs = Inputs()

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
        """Replace the body of a step by a result, an error, or the function `call`.

        `step` is a name, (name, count), or a step made by `@define_step`; `kind="rollback"` means its rollback, and
        `inside` limits it to steps inside the step of that name. Pass a workflow instead to mock it wherever it is
        started. `times` counts attempts: after them the next mock is used, and finally the real body. A result is
        recorded like the body's: if it does not match the step's type, the step fails.
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
        """Let the next attempts of a step time out without running their bodies, or let a wait reach its deadline."""
        target = Target.of(step, kind, inside)
        what = f"force_timeout of {target}"
        self._mocks.add(Mock(what, target, times=times, allow_unused=allow_unused, is_timeout=True))

    def send_event(
        self, type: Any, payload: Any = None, dedup_key: str | None = None, *, by: object = None
    ) -> None:
        """Send the instance an event: now, or as soon as it is started."""
        self._give(event_input(type, payload, dedup_key, by))

    def answer(self, request: str, value: Any, *, by: object = "test", comment: str = "") -> None:
        """Answer the request of that name: now, or as soon as it is asked."""
        self._give(answer_input(request, value, by, comment))

    def crash_before(
        self,
        step: object,
        *,
        attempt: int | None = None,
        kind: str | None = None,
        inside: str | None = None,
        stay_down: bool = False,
    ) -> None:
        """Let the worker die, once, before the body starts. Its attempt is recorded and becomes `lost`.

        For a step without a body, nothing is recorded. Another worker continues; with `stay_down`, the next `run` does.
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
        """Let the worker die, once, after the body or the wait has ended and before that is recorded.

        An `atomic` step has already recorded its end together with its writes: only its delivery is lost.
        """
        target = Target.of(step, kind, inside)
        self._crashes.add(Crash(target, is_after=True, attempt=attempt, stay_down=stay_down))

    def _give(self, given: Input) -> None:
        if self._instance is not None:
            given.is_given = given.give(self._instance)
        self._inputs.add(given)

    @property
    def _unused(self) -> list[str]:
        return [*self._mocks.unused(), *self._crashes.unused(), *self._inputs.unused()]


@dataclass(slots=True, eq=False)
class Input:
    """Something sent to the instance as soon as it can take it. `give` returns whether it was sent."""

    what: str
    give: Callable[[Instance], bool]
    is_given: bool = False


class Inputs:
    """All prepared events and answers, in the order in which the test prepared them."""

    def __init__(self) -> None:
        self._all: list[Input] = []

    def add(self, given: Input) -> None:
        self._all.append(given)

    def give_to(self, instance: Instance) -> bool:
        """Send what can be taken. Return whether anything was sent. A finished instance takes nothing."""
        left = [one for one in self._all if not one.is_given]
        if not left or instance.refresh().is_finished:
            return False
        for one in left:
            one.is_given = one.give(instance)
        return any(one.is_given for one in left)

    def unused(self) -> list[str]:
        return [one.what for one in self._all if not one.is_given]


def event_input(type: Any, payload: Any, dedup_key: str | None, by: object) -> Input:
    """Prepare an event, which can be taken from the start."""

    def give(instance: Instance) -> bool:
        instance.send_event(type, payload, dedup_key, by=by)
        return True

    return Input(f'event "{getattr(type, "name", type)}"', give)


def answer_input(request: str, value: Any, by: object, comment: str) -> Input:
    """Prepare an answer, which can be taken once the request waits."""

    def give(instance: Instance) -> bool:
        waiting = requests.open_requests().filter(instance=instance, generation=instance.refresh().generation)
        seqs = list(waiting.values_list("seq", flat=True))
        rows = Step.objects.filter(instance=instance, generation=instance.generation, name=request)
        if not rows.filter(seq__in=seqs).exists():
            return False
        requests.answer(instance, request, value, by=by, comment=comment)
        return True

    return Input(f'answer to request "{request}"', give)
