"""Events and answers that a test has prepared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.models import Instance, Step
from engine.steer import requests


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


def event(type: Any, payload: Any, dedup_key: str | None, by: object) -> Input:
    """Prepare an event, which can be taken from the start."""

    def give(instance: Instance) -> bool:
        instance.send_event(type, payload, dedup_key, by=by)
        return True

    return Input(f'event "{getattr(type, "name", type)}"', give)


def answer(request: str, value: Any, by: object, comment: str) -> Input:
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
