"""Whether the code that is shown is the code under which the instance ran."""

from __future__ import annotations

from dataclasses import dataclass

from engine.declare.registry import workflows as registry
from engine.models import Instance


@dataclass(frozen=True, slots=True)
class Version:
    """Fingerprints of the handler: the recorded one, empty if there is none, and the one of this code."""

    recorded: str
    current: str

    @property
    def is_gone(self) -> bool:
        """Whether this code no longer has the workflow."""
        return not self.current

    @property
    def is_changed(self) -> bool:
        return bool(self.recorded and self.current) and self.recorded != self.current


def version_of(instance: Instance) -> Version:
    """Return the versions of an instance in the generation that is shown."""
    workflow = registry.get(instance.workflow)
    return Version(instance.code, "" if workflow is None else workflow.fingerprint)
