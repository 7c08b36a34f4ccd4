"""The params in the form of a restart: what was typed, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from engine.declare.registry import workflows as registry
from engine.models import Instance
from engine.values.unchanged import UNCHANGED
from studio.display import payloads
from studio.forms.checked import Checked
from studio.forms.typed_secrets import hidden
from studio.workflows.start_form import check_params

LONGEST_SHOWN = 64_000  # characters; larger ones are changed from the command line


@dataclass(frozen=True, slots=True)
class TypedParams:
    """The text of the form; without one, nothing can be changed."""

    recorded: str | None
    typed: str | None = None

    @classmethod
    def of(cls, request: HttpRequest, instance: Instance) -> TypedParams:
        workflow = registry.get(instance.workflow)
        if workflow is None or not workflow.takes_params:
            return cls(None)
        text = payloads.pretty_stored(Instance.objects.only("params").get(key=instance.key).params)
        if len(text) > LONGEST_SHOWN:
            return cls(None)
        typed = request.POST.get("params")
        return cls(text, None if typed is None else typed.replace("\r\n", "\n"))

    @property
    def is_changed(self) -> bool:
        return (
            self.recorded is not None
            and self.typed is not None
            and self.typed.strip() != self.recorded.strip()
        )

    def checked(self, instance: Instance) -> Checked:
        """Return the new params, or their problems; the value is UNCHANGED if they stay as they are."""
        if not self.is_changed or self.typed is None:
            return Checked(UNCHANGED, ())
        return check_params(registry[instance.workflow], self.typed)

    def shown(self, instance: Instance) -> str | None:
        """Return the text of the form, without secrets that were typed."""
        if self.typed is None or self.recorded is None:
            return self.recorded
        schema: Any = registry[instance.workflow].params_schema()
        return hidden(self.typed, schema) if self.is_changed else self.recorded
