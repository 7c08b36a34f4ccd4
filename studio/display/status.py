"""The statuses as people see them: ten, derived from the eight that are stored and from what an instance waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.values.states import InstanceStatus, WaitingFor


@dataclass(frozen=True, slots=True)
class Look:
    """How a status is drawn: a word, an icon, a colour (by the name) and an outline, so that no code stands alone."""

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
# Of attempts and steps; they share colours and icons with the statuses of instances.
PARTS = _looks(
    *LOOKS.values(),
    Look("cancelled", "square", "closed"),
    Look("timed_out", "clock", "closed"),
    Look("lost", "zap", "closed"),
    Look("not_awaited", "square", "idle"),
)
OPEN = ("queued", "running", "sleeping", "waiting", "approval", "retrying", "paused")
CLOSED = ("complete", "errored", "terminated")
GROUPS: Mapping[str, tuple[str, ...]] = {"open": OPEN, "closed": CLOSED}

_STORED: Mapping[str, list[tuple[str, str | None]]] = {
    "running": [("running", None), ("waiting_for_pause", None)],
    "sleeping": [("waiting", "sleep")],
    "retrying": [("waiting", "retry")],
    "waiting": [("waiting", "event"), ("waiting", "child")],
    # Whatever else it waits for: a person can do something about it. Which ones, their open requests tell.
    "approval": [("waiting", None)],
}
# Those that a request takes an instance from.
PARKED = ("sleeping", "waiting", "retrying")
_WAITING = {WaitingFor.SLEEP: "sleeping", WaitingFor.RETRY: "retrying"}


def display_status(status: str, waiting_for: str = "", *, asks: bool = False) -> str:
    """Give the status that people see; `asks` tells that a request of the instance is open."""
    if status == InstanceStatus.WAITING and asks:
        return "approval"
    if status == InstanceStatus.WAITING:
        return _WAITING.get(WaitingFor(waiting_for), "waiting") if waiting_for else "waiting"
    return "running" if status == InstanceStatus.WAITING_FOR_PAUSE else status


def stored(name: str) -> list[tuple[str, str | None]]:
    """Give the (status, waiting_for) pairs behind a display status or a group; None stands for any."""
    if name in GROUPS:
        return [pair for one in GROUPS[name] for pair in stored(one)]
    return _STORED.get(name, [(name, None)])


def display_status_of_step(status: str, kind: str) -> str:
    """Give the status of a step as people see it: a waiting `do` is backing off."""
    if status != "waiting":
        return status
    return {"do": "retrying", "sleep": "sleeping", "request": "approval"}.get(kind, "waiting")
