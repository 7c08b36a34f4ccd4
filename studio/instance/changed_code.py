"""The notice about code that changed since an instance started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.declare.registry import workflows as registry
from engine.models import Instance
from engine.values.errors import CodeChangedError


@dataclass(frozen=True, slots=True)
class Notice:
    """Fingerprints of the code that an open instance last ran under, and of the current code.

    `current` is empty if the workflow no longer exists in the code.
    """

    recorded: str
    current: str
    is_paused: bool
    pauses: bool  # the workflow's setting

    @property
    def is_back(self) -> bool:
        return self.recorded == self.current

    @property
    def is_to_be_accepted(self) -> bool:
        return bool(self.current) and not self.is_back and (self.is_paused or self.pauses)


def notice_of(instance: Instance, error: Mapping[str, object] | None) -> Notice | None:
    """Return the notice, if there is one to show."""
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
    """Return whether a code change caused the pause."""
    return bool(error) and error.get("type") == CodeChangedError.__name__  # type: ignore[union-attr]
