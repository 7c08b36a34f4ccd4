"""A map of all steps of a long instance: where steps failed or were slow, and a way there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, ExpressionWrapper, F, IntegerField, Max, Min, Sum

from engine.models import Instance
from engine.status.steps import steps_of
from engine.values.identity import TOP
from studio.instance.steps.part import Part
from studio.instance.window import FAILED, SHOWN, Window

PARTS = 14  # that lead somewhere, each wide enough to press on a phone
SPOTS = 10 * PARTS  # that can have a mark
LEAST = timedelta(seconds=1)  # that a slow step takes
TIMES = 10  # how many times as long as the mean


@dataclass(frozen=True, slots=True)
class Spot:
    """Neighbouring steps with one mark: `failed` or `slow`. `x` is in percent."""

    x: float
    mark: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps of a part of the map. `failed` is the first failed one, `slow` how many spots have a slow one."""

    first: int
    upto: int
    failed: int | None
    failures: int
    slow: int
    is_shown: bool


@dataclass(frozen=True, slots=True)
class Minimap:
    """The map."""

    spots: Sequence[Spot]
    stretches: Sequence[Stretch]


def minimap(instance: Instance, part: Part, window: Window) -> Minimap | None:
    """Return the map, if there are more steps than a page shows. It takes one pass over them."""
    if part.total <= SHOWN or window.is_narrowed or not part.steps:
        return None
    rows = steps_of(instance).filter(parent=TOP)
    last = rows.order_by("-seq").values_list("seq", flat=True).first() or 1
    found = {row["spot"]: row for row in _by_spot(rows, last)}
    slowest = _least_slow(list(found.values()))
    spots = [
        Spot(round(100 * at / SPOTS, 2), mark) for at, row in found.items() if (mark := _mark(row, slowest))
    ]
    width = SPOTS // PARTS
    groups = [[found[at] for at in range(n, n + width) if at in found] for n in range(0, SPOTS, width)]
    return Minimap(spots, [_stretch(group, part, slowest) for group in groups if group])


def _by_spot(rows: Any, last: int) -> Any:
    spot = ExpressionWrapper((F("seq") - 1) * SPOTS / last, output_field=IntegerField())
    took = F("finished_at") - F("started_at")
    return (
        rows.annotate(spot=spot)
        .values("spot")
        .annotate(
            first=Min("seq"),
            upto=Max("seq"),
            failed=Min("seq", filter=FAILED),
            failures=Count("seq", filter=FAILED),
            ended=Count("finished_at"),
            longest=Max(took),
            sum=Sum(took),
        )
        .order_by("spot")
    )


def _least_slow(found: Sequence[Mapping[str, Any]]) -> timedelta:
    """Return from which time on a step is slow."""
    ended = sum(row["ended"] for row in found)
    took = sum((row["sum"] or timedelta(0) for row in found), timedelta(0))
    return max(LEAST, TIMES * took / max(ended, 1))


def _mark(row: Mapping[str, Any], slowest: timedelta) -> str:
    if row["failed"] is not None:
        return "failed"
    return "slow" if row["longest"] is not None and row["longest"] >= slowest else ""


def _stretch(group: Sequence[Mapping[str, Any]], part: Part, slowest: timedelta) -> Stretch:
    first, upto = group[0]["first"], group[-1]["upto"]
    return Stretch(
        first,
        upto,
        failed=min((row["failed"] for row in group if row["failed"] is not None), default=None),
        failures=sum(row["failures"] for row in group),
        slow=sum(_mark(row, slowest) == "slow" for row in group),
        is_shown=first <= part.steps[-1].seq <= upto,
    )
