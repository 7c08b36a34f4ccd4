"""The pane of a row: which one is open, and all that is known of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from engine.models import Event, Instance
from engine.status import usual
from engine.status.snapshot import with_prefixes
from engine.status.steps import attempts_by_step, logs_of
from engine.values.identity import TOP
from studio.display import payloads
from studio.display.rendering import render_to_string
from studio.instance import inner_steps
from studio.instance.page import InstancePage
from studio.instance.steps import nested as nested_steps
from studio.instance.steps.children import with_children
from studio.instance.steps.line import INLINE, Line
from studio.instance.steps.lines import LOGS_SHOWN, lines_of
from studio.instance.steps.part import step_rows
from studio.instance.steps.source import source_line
from studio.instance.window import opened as opened_by

NONE = "none"  # an address that opens no row
FIXED = ("start", "result")
_NUMBER = re.compile(r"[0-9]{1,9}")
_NAMED = re.compile(r"(.{1,256})-([0-9]{1,9})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Choice:
    """The open row: `start`, `result`, or the number of a step. `top` is the step of the handler around it."""

    name: str
    top: int = 0


def choice_of(instance: Instance, text: str) -> Choice | None:
    """Find the row that an address names: its name and count (`charge-2`), or its number. None if there is none."""
    if text in (*FIXED, NONE):
        return Choice(text)
    rows = step_rows(instance).only("seq", "parent").order_by("seq")
    named = _NAMED.fullmatch(text.replace("\0", ""))
    found = rows.filter(seq=int(text)).first() if _NUMBER.fullmatch(text) else None
    if found is None and named is not None:
        found = rows.filter(parent=TOP, name=named[1], count=int(named[2])).first()
    if found is None:
        return None
    top = found
    while top.parent != TOP:
        top = rows.get(seq=top.parent)
    return Choice(str(found.seq), top.seq)


def read(instance: Instance, seq: int, *, place: str = "") -> Line | None:
    """Read one step with all that its pane shows."""
    step = step_rows(instance).filter(seq=seq).first()
    if step is None:
        return None
    deeper = nested_steps.count(instance, [step])
    logs = logs_of(instance).filter(step_seq=seq).order_by("-key")[:LOGS_SHOWN]
    consumed = Event.objects.filter(
        instance_id=instance.key,
        consumed_generation=step.kept_from or step.generation,
        consumed_by=seq,
    )
    parent = step_rows(instance).filter(seq=step.parent).first() if step.parent != TOP else None
    lines = lines_of(
        [step],
        attempts_by_step(instance, [step]),
        tuple(consumed),
        list(logs)[::-1],
        deeper,
        around=[parent] if parent is not None else (),
        paused_at=instance.paused_at,
        place=place,
    )
    return with_children(lines)[0]


@dataclass(frozen=True, slots=True)
class Input:
    """The params of the instance that a step has started."""

    instance: Instance
    params: payloads.Payload


def input_of(line: Line) -> Input | None:
    """Read what a step was given, if that was recorded. The arguments of a function are not."""
    if line.relative is None:
        return None
    workflow, of = line.relative
    rows: Any = Instance.objects.filter(workflow=workflow, id=of).only("workflow", "id")
    found = with_prefixes(rows, "params", length=INLINE).first()
    if found is None:
        return None
    params = payloads.payload("params", found.params_text or "null", found.params_size, full_up_to=INLINE)
    return Input(found, params)


def html_of(
    line: Line, instance: Instance, *, inner: str = "", was_open: bool = False, has_rows: bool = False
) -> str:
    """Render the pane of a step. `inner` is the HTML of the steps inside it, if the address opens them.

    `was_open` means that the step had not ended when somebody opened the pane: what arrives later moves nothing.
    `has_rows` means that the page has rows of the steps inside it: the pane does not list them again.
    """
    known = usual.durations(instance.workflow, line.step.name) if line.step.kind == "do" else None
    is_steady = was_open or not line.is_final
    query = {"rows": line.step.seq if has_rows else "", "steady": 1 if is_steady else ""}
    context: dict[str, Any] = {
        "line": line,
        "query": line.place + urlencode({name: value for name, value in query.items() if value}),
        "instance": instance,
        "inner": inner,
        "has_rows": has_rows,
        "input": input_of(line),
        "is_steady": is_steady,
        "usual": known,
        "source": source_line(instance, line),
        "is_slow": known is not None and line.span is not None and line.span > known.p95,
    }
    return render_to_string("studio/instance/steps/pane.html", context)


def fixed_html(page: InstancePage, name: str) -> str:
    """Render the pane of the first or the last row."""
    return render_to_string(f"studio/instance/steps/pane-{name}.html", {"d": page, "instance": page.instance})


def opened(page: InstancePage, chosen: str, opens: str) -> dict[str, str]:
    """Render what an address opens: the pane by the name of its row, with the page of steps inside it."""
    if chosen in FIXED:
        return {chosen: fixed_html(page, chosen)}
    seq = next((one.step.seq for one in page.lines if str(one.step.seq) == chosen), None)
    line = None if seq is None else read(page.instance, seq, place=page.place)
    if line is None:
        return {}
    has_rows = line.step.seq in page.window.rows
    inside = {} if has_rows else inner_steps.draw_opened(page.instance, opened_by(opens), place=page.place)
    return {chosen: html_of(line, page.instance, inner=inside.get(line.step.seq, ""), has_rows=has_rows)}
