"""Which version of the code is shown: that under which the instance started, the one of now, or their difference."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from engine.declare.registry import workflows as registry
from engine.models import Instance
from studio.workflows.code import Found, source_now
from studio.workflows.code_difference import Compared, compared
from studio.workflows.code_versions import Kept, version

START, NOW, DIFFERENCE = "start", "now", "difference"
CHOICES = {START: "At the start", NOW: "Now", DIFFERENCE: "Difference"}


@dataclass(frozen=True, slots=True)
class Version:
    """Fingerprints of the handler: the recorded one, empty if there is none, and the one of this code.

    `kept` is the recorded version if it is another one. `shown` is one of CHOICES, or empty if there is no choice.
    """

    recorded: str
    current: str
    kept: Kept | None = None
    shown: str = ""

    @property
    def is_gone(self) -> bool:
        """Whether this code no longer has the workflow."""
        return not self.current

    @property
    def is_changed(self) -> bool:
        return bool(self.recorded and self.current) and self.recorded != self.current

    @property
    def is_known(self) -> bool:
        """Whether the source of the recorded version is kept, if it is another one."""
        return self.kept is not None and self.kept.source is not None

    @property
    def is_of_start(self) -> bool:
        """Whether another version than that of now is shown."""
        return self.is_known and self.shown in ("", START)

    @property
    def is_difference(self) -> bool:
        return self.shown == DIFFERENCE

    def source(self, workflow: str) -> Found | None:
        """Return the source that is shown."""
        return self.kept.source if self.kept is not None and self.is_of_start else source_now(workflow)

    def compared(self, workflow: str) -> Compared | None:
        """Return what has changed since, if both sources are known."""
        now = source_now(workflow)
        kept = self.kept.source if self.kept is not None and self.is_changed else None
        return None if kept is None or now is None else compared(kept, now)


def version_of(instance: Instance, asked: str = "") -> Version:
    """Return the versions of an instance in the generation that is shown."""
    workflow = registry.get(instance.workflow)
    current = "" if workflow is None else workflow.fingerprint
    recorded = instance.code
    if recorded in ("", current):
        return Version(recorded, current)
    kept = version(instance.workflow, recorded)
    if kept.source is None or not current or source_now(instance.workflow) is None:
        return Version(recorded, current, kept)
    usual = NOW if goes_on(instance) else START
    return Version(recorded, current, kept, asked if asked in CHOICES else usual)


def goes_on(instance: Instance) -> bool:
    """Return whether the code now makes the next steps of an instance, although it started under another version."""
    workflow = registry.get(instance.workflow)
    is_open = not instance.is_finished and instance.finished_at is None
    return is_open and workflow is not None and workflow.on_code_change == "continue"


def refuses(given: Mapping[str, str]) -> Collection[str]:
    return () if given.get("version", "") in ("", *CHOICES) else ("version",)
