"""What stands beside the lines of code: the state of their steps, with a link to each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape

from studio.diagram.flow import FALL_OUT, Branch, End, Item
from studio.diagram.paint import UNREACHED
from studio.display.rendering import render_to_string
from studio.display.status import PARTS
from studio.frame.icons import icons_address
from studio.instance.code.painting import Painted, Part


def beside(line: int, items: Sequence[Item], done: Painted, paused_at: datetime | None) -> str:
    """Return the HTML beside a line with these items. It has an id: it is updated while the code stays."""
    said = "".join(_said(item, done, paused_at) for item in items if item.id != FALL_OUT)
    return f'<span class="beside-line" id="f-{line}">{said}</span>'


def _said(item: Item, done: Painted, paused_at: datetime | None) -> str:
    part = done.parts.get(item.id)
    if part is not None:
        return _of_step(item, part, paused_at)
    is_reached = item.id in done.painting.taken
    if not is_reached:
        return f'<span class="fact open">{_icon(UNREACHED)}not reached</span>'
    match item:
        case Branch(arms=arms):
            taken = [arm.label for arm in arms if arm.key in done.painting.taken]
            return f'<span class="fact">{escape(taken[0])}</span>' if len(taken) == 1 else ""
        case End(how=how) if how in PARTS:
            return f'<span class="fact s-{how}">{_icon(PARTS[how].icon)}ended here</span>'
    return ""


def _of_step(item: Item, part: Part, paused_at: datetime | None) -> str:
    times = part.group.times
    shown = f'<a href="{escape(part.address)}">{escape(part.paint.fact or part.paint.spoken)}</a>'
    hidden = f'<span class="visually-hidden">{escape(part.paint.status.replace("_", " "))}: </span>'
    ticks = _ticking(part, paused_at)
    of_all = f' <a href="{escape(part.find)}">all {times:,}</a>' if part.find else ""
    said = f"{_icon(part.paint.icon)}{hidden}{shown}{ticks}{of_all}"
    return f'<span class="fact s-{part.status}" data-of="{item.id}">{said}</span>'


def _ticking(part: Part, paused_at: datetime | None) -> str:
    """Return the time that somebody waits for, unless timers stand still."""
    step = part.step
    if step.finished_at is not None or paused_at is not None or step.is_stuck:
        return ""
    moment, kind = (step.started_at, "since") if step.status == "running" else (step.wake_at, "until")
    shown = {"moment": moment, "kind": kind}
    return "" if moment is None else f" {render_to_string('studio/instance/code/ticks.html', shown).strip()}"


def _icon(name: str) -> str:
    return f'<svg class="icon" aria-hidden="true"><use href="{escape(icons_address())}#{name}"/></svg>'
