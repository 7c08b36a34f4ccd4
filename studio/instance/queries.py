"""Read what the instance page shows, with a fixed number of queries, however many steps there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.models import Instance, Step
from engine.status import record
from engine.status.record import Limits, Record
from engine.status.snapshot import snapshot, with_prefixes
from engine.status.steps import steps_of
from engine.values.shown import display_status
from studio.display import payloads
from studio.instance.page import InstancePage, changed_code_of, place_of
from studio.instance.steps import nested as nested_steps
from studio.instance.steps import part as parts
from studio.instance.steps.children import params_of, with_children
from studio.instance.steps.failures import failure, origin_of
from studio.instance.steps.lines import lines_of
from studio.instance.steps.nested import NestedSteps
from studio.instance.steps.part import Part
from studio.instance.steps.toggles import with_toggles
from studio.instance.timeline_tracks import timeline_of
from studio.instance.window import NEWEST, Window
from studio.instances.queries import rows_of

UNREACHED_SHOWN = 50
CHILDREN_SHOWN = 50
LIMITS = Limits(events=100, children=CHILDREN_SHOWN, actions=1)  # Activity reads those itself


def of(workflow: str, id: str, window: Window = NEWEST, generation: int | None = None) -> InstancePage:
    """Read an instance by workflow and id, with the steps of a window.

    `generation` selects an earlier one. Raises Instance.DoesNotExist and GenerationNotFoundError.
    """
    return _read(_instances().get(workflow=workflow, id=id), window, generation)


def of_key(key: int, window: Window = NEWEST) -> InstancePage:
    """Read an instance by key. Raises Instance.DoesNotExist."""
    return _read(_instances().get(key=key), window)


def _instances() -> Any:
    return with_prefixes(Instance.objects, "params", "output", length=payloads.FULL_UP_TO)


def _read(newest: Instance, window: Window, generation: int | None = None) -> InstancePage:
    shown = snapshot(newest, generation, output_up_to=payloads.FULL_UP_TO)
    part = parts.read(shown.instance, window)
    rows = parts.step_rows(shown.instance)
    inner, nested = nested_steps.within(shown.instance, part.steps, rows, window.rows)
    found = record.read(shown, [*part.steps, *inner], limits=LIMITS, with_payloads=True)
    return _page(found, part, nested, window)


def _page(found: Record, part: Part, nested: Mapping[int, NestedSteps], window: Window) -> InstancePage:
    instance, place = found.instance, place_of(found.generations)
    steps = lines_of(
        found.steps,
        found.attempts,
        found.events,
        (),
        nested,
        paused_at=instance.paused_at,
        place=place,
    )
    lines = with_children(with_toggles(steps, window))
    error = instance.last_problem if isinstance(instance.last_problem, dict) else None
    code = changed_code_of(instance, error)
    return InstancePage(
        record=found,
        status=_status(found),
        lines=tuple(lines),
        window=window,
        part=part,
        timeline=timeline_of(found, lines, is_newest=window.is_newest, is_unfolded=window.is_unfolded),
        children=tuple(rows_of(found.children)) if found.children else (),
        children_params=params_of([(one.workflow, one.id) for one in found.children]),
        params=_params(instance, is_past=found.is_past),
        output=_output(instance, is_past=found.is_past),
        failure=None if code and code.is_paused else failure(error),
        code=code,
        unreached=_unreached(instance),
        origin=origin_of(found, {line.step.seq for line in lines}, place),
    )


def _status(found: Record) -> str:
    asks = any(step.is_asking for step in found.facts.steps)
    return display_status(found.instance.status, found.instance.waiting_for, asks=asks)


def _params(instance: Any, *, is_past: bool) -> payloads.Payload:
    kept = getattr(instance, "params_from", None) if is_past else None
    what = "params" if kept is None else f"params-g{kept}"
    return payloads.payload(what, instance.params_text or "null", instance.params_size)


def _output(instance: Any, *, is_past: bool) -> payloads.Payload | None:
    if instance.status != "complete":
        return None
    what = f"output-g{instance.generation}" if is_past else "output"
    return payloads.payload(what, instance.output_text or "null", instance.output_size)


def _unreached(instance: Instance) -> tuple[Step, ...]:
    """Read the first steps that the code no longer called when the instance ended."""
    if not instance.unreached:
        return ()
    rows = steps_of(instance).filter(seq__in=instance.unreached[:UNREACHED_SHOWN])
    return tuple(rows.only("seq", "name", "count").order_by("seq"))
