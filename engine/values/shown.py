"""The ten statuses that users see, derived from the eight stored ones and from what an instance waits for."""

from __future__ import annotations

from collections.abc import Mapping

from engine.values.states import InstanceStatus, WaitingFor

OPEN = ("queued", "running", "sleeping", "waiting", "approval", "retrying", "paused")
CLOSED = ("complete", "errored", "terminated")
SHOWN = (*OPEN, *CLOSED)
GROUPS: Mapping[str, tuple[str, ...]] = {"open": OPEN, "closed": CLOSED}

_STORED: Mapping[str, list[tuple[str, str | None]]] = {
    "running": [("running", None), ("waiting_for_pause", None)],
    "sleeping": [("waiting", "sleep")],
    "retrying": [("waiting", "retry")],
    "waiting": [("waiting", "event"), ("waiting", "child")],
    # Whatever the instance waits for: its open requests tell whether it waits for approval.
    "approval": [("waiting", None)],
}
# Statuses that become `approval` while a request is open.
PARKED = ("sleeping", "waiting", "retrying")
_WAITING = {WaitingFor.SLEEP: "sleeping", WaitingFor.RETRY: "retrying"}


def display_status(status: str, waiting_for: str = "", *, asks: bool = False) -> str:
    """Return the status that users see. `asks` means that the instance has an open request."""
    if status == InstanceStatus.WAITING and asks:
        return "approval"
    if status == InstanceStatus.WAITING:
        return _WAITING.get(WaitingFor(waiting_for), "waiting") if waiting_for else "waiting"
    return "running" if status == InstanceStatus.WAITING_FOR_PAUSE else status


def stored(name: str) -> list[tuple[str, str | None]]:
    """Return the stored (status, waiting_for) pairs of a shown status or a group. None stands for any."""
    if name in GROUPS:
        return [pair for one in GROUPS[name] for pair in stored(one)]
    return _STORED.get(name, [(name, None)])
