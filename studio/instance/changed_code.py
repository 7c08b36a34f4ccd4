"""What the page of an instance says of code that is not the one it started under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.declare.registry import workflows as registry
from engine.models import Instance
from engine.values.errors import CodeChangedError


@dataclass(frozen=True, slots=True)
class Notice:
    """The code that an open instance was left under, and what it would go on under: fingerprints.

    `current` is empty where the workflow is no longer in the code.
    """

    recorded: str
    current: str
    is_paused: bool
    pauses: bool  # as its workflow wants it

    @property
    def is_back(self) -> bool:
        return self.recorded == self.current

    @property
    def is_to_be_accepted(self) -> bool:
        return bool(self.current) and not self.is_back and (self.is_paused or self.pauses)


def notice_of(instance: Instance, error: Mapping[str, object] | None) -> Notice | None:
    """Say it where there is something to say."""
    workflow = registry.get(instance.workflow)
    current = "" if workflow is None else workflow.fingerprint
    is_paused = instance.status == "paused" and _is_of_code(error)
    if instance.is_finished or not instance.code:
        return None
    if not is_paused and current in ("", instance.code):
        return None
    pauses = workflow is not None and workflow.on_code_change == "pause"
    return Notice(instance.code, current, is_paused, pauses)


def _is_of_code(error: Mapping[str, object] | None) -> bool:
    """Tell whether this reason of a pause is a change of the code."""
    return bool(error) and error.get("type") == CodeChangedError.__name__  # type: ignore[union-attr]
