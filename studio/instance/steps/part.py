"""Read a part of the steps of the handler: the newest, those up to one, or those that somebody looks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.models import Instance
from engine.status.snapshot import with_prefixes
from engine.status.steps import steps_of
from engine.values.identity import TOP
from studio.instance.steps.line import INLINE
from studio.instance.window import FAILED, LARGEST, SHOWN, WINDOW, Window

FAILED_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Part:
    """Steps in order, and where the other parts begin, as far as there are any.

    `matching` is how many steps somebody looks for, `total` how many there are. `first_upto`, `earlier` and `later`
    are the numbers of the last steps of other parts. `failed` are the first that failed or are retried, of many.
    """

    steps: Sequence[Any]
    matching: int
    total: int
    first_upto: int | None = None
    earlier: int | None = None
    later: int | None = None
    failed: tuple[int, ...] = ()


def step_rows(instance: Instance) -> Any:
    """Return the query for its steps, with prefixes of their outputs."""
    return with_prefixes(steps_of(instance), "output", length=INLINE)


def read(instance: Instance, window: Window) -> Part:
    """Read the steps of a window, and where its neighbours are."""
    wanted = window.narrowed(steps_of(instance).filter(parent=TOP))
    upto = wanted if window.upto is None else wanted.filter(seq__lte=min(window.upto, LARGEST))
    found = list(with_prefixes(upto, "output", length=INLINE).order_by("-seq")[: SHOWN + 1])
    is_cut = len(found) > SHOWN or window.upto is not None
    steps = found[: WINDOW if is_cut else SHOWN][::-1]
    if not is_cut and not window.is_narrowed:
        return Part(steps, len(steps), len(steps))
    total = steps_of(instance).filter(parent=TOP).count()
    numbers = wanted.order_by("seq").values_list("seq", flat=True)
    return Part(
        steps,
        matching=(numbers.count() if is_cut else len(steps)) if window.is_narrowed else total,
        total=total,
        first_upto=_nth(numbers) if is_cut else None,
        earlier=steps[0].seq - 1 if steps and len(found) > len(steps) else None,
        later=_nth(numbers.filter(seq__gt=steps[-1].seq)) if steps and is_cut else None,
        failed=tuple(_failed(instance)),
    )


def _nth(numbers: Any) -> int | None:
    """Return the number of the last step of the first part of these, if they are as many."""
    return next(iter(numbers[WINDOW - 1 : WINDOW]), None)


def _failed(instance: Instance) -> Sequence[int]:
    rows = steps_of(instance).filter(FAILED, parent=TOP).order_by("seq").values_list("seq", flat=True)
    return list(rows[:FAILED_SHOWN])
