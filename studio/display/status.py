"""How statuses look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """How a status looks: word, icon, color (by name) and outline, so that nothing depends on color alone."""

    name: str
    icon: str
    outline: str  # idle: dashed, nothing executes · busy: solid · closed: filled


def _looks(*looks: Look) -> Mapping[str, Look]:
    return {look.name: look for look in looks}


LOOKS = _looks(
    Look("queued", "circle-dashed", "idle"),
    Look("running", "play", "busy"),
    Look("sleeping", "moon", "idle"),
    Look("waiting", "hourglass", "idle"),
    Look("approval", "diamond", "idle"),
    Look("retrying", "rotate-cw", "idle"),
    Look("paused", "pause", "idle"),
    Look("complete", "check", "closed"),
    Look("errored", "x", "closed"),
    Look("terminated", "square", "closed"),
)
# Attempts and steps share colors and icons with instances.
PARTS = _looks(
    *LOOKS.values(),
    Look("cancelled", "square", "closed"),
    Look("timed_out", "clock", "closed"),
    Look("lost", "zap", "closed"),
    Look("not_awaited", "square", "idle"),
)


def display_status_of_step(status: str, kind: str) -> str:
    """Return the status of a step that users see: a waiting `do` is retrying."""
    if status != "waiting":
        return status
    return {"do": "retrying", "sleep": "sleeping", "request": "approval"}.get(kind, "waiting")
