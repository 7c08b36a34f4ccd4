"""The folded steps inside a step: items of a map, branches of a parallel, many steps of one body.

They are shown one page at a time, failed ones first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, IntegerField, Value, When
from django.utils.safestring import SafeString, mark_safe

from engine.models import Instance
from engine.status.steps import attempts_by_step, logs_of
from studio.display.rendering import render_to_string
from studio.instance.steps import nested as nested_steps
from studio.instance.steps.children import with_children
from studio.instance.steps.line import step_html
from studio.instance.steps.lines import LOGS_SHOWN, lines_of
from studio.instance.steps.nested import PAGE
from studio.instance.steps.part import step_rows

_FAILED_FIRST = Case(
    *(
        When(status=status, then=Value(n))
        for n, status in enumerate(("errored", "waiting", "running", "complete"))
    ),
    default=Value(9),
    output_field=IntegerField(),
)


@dataclass(frozen=True, slots=True)
class Inner:
    """A page of the steps inside a step."""

    seq: int
    kind: str
    nested: nested_steps.NestedSteps
    page: int
    begun: int
    steps: tuple[SafeString, ...]
    place: str = ""  # start of the query strings of links

    @property
    def first(self) -> int:
        return (self.page - 1) * PAGE + 1

    @property
    def last(self) -> int:
        return min(self.page * PAGE, self.begun)

    @property
    def before(self) -> int | None:
        return self.page - 1 if self.page > 1 else None

    @property
    def after(self) -> int | None:
        return self.page + 1 if self.last < self.begun else None


def read(instance: Instance, seq: int, page: int = 1, *, place: str = "") -> Inner | None:
    """Read a page, or the last page if it is past the end. Return None if there is no such step."""
    rows = step_rows(instance)
    parent = rows.filter(seq=seq).first()
    if parent is None:
        return None
    nested = nested_steps.count(instance, [parent]).get(seq, nested_steps.NestedSteps(0, {}, 0))
    begun = sum(nested.counts.values())
    page = max(1, min(page, -(-begun // PAGE)))
    found = rows.filter(parent=seq).order_by(_FAILED_FIRST, "count", "seq")[(page - 1) * PAGE : page * PAGE]
    return Inner(seq, parent.kind, nested, page, begun, _drawn(instance, parent, list(found), place), place)


def _drawn(instance: Instance, parent: Any, shown: Sequence[Any], place: str) -> tuple[SafeString, ...]:
    deeper, inside = nested_steps.within(instance, shown, step_rows(instance))
    steps = [*shown, *deeper]
    logs = logs_of(instance).filter(step_seq__in=[step.seq for step in steps]).order_by("-key")[:LOGS_SHOWN]
    lines = with_children(
        lines_of(
            steps,
            attempts_by_step(instance, steps),
            (),
            list(logs)[::-1],
            inside,
            around=[parent],
            paused_at=instance.paused_at,
            place=place,
        )
    )
    # Safe: the output of a template, which escapes values.
    return tuple(mark_safe(step_html(line, instance)) for line in lines)  # noqa: S308


def html_of(instance: Instance, inner: Inner) -> str:
    return render_to_string("studio/instance/steps/inner.html", {"instance": instance, "inner": inner})


def draw_opened(instance: Instance, wanted: Mapping[int, int], *, place: str = "") -> dict[int, str]:
    """Render the steps that an address opens; return HTML by step."""
    found = [read(instance, seq, page, place=place) for seq, page in wanted.items()]
    return {inner.seq: html_of(instance, inner) for inner in found if inner is not None and inner.begun}
