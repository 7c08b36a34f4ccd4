"""The params in the form of a restart: what was typed, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from engine.declare.registry import workflows as registry
from engine.models import Instance
from engine.values.unchanged import UNCHANGED
from studio.display import payloads
from studio.forms.checked import Checked, Problem
from studio.forms.json_form import JsonForm
from studio.workflows.start_form import check_params

LONGEST_SHOWN = 64_000  # characters; larger ones are changed from the command line


@dataclass(frozen=True, slots=True)
class TypedParams:
    """The params that are recorded, and the form to change them; without a form, nothing can be changed."""

    recorded: str = ""
    form: JsonForm | None = None
    is_typed: bool = False

    @classmethod
    def of(cls, request: HttpRequest, instance: Instance) -> TypedParams:
        workflow = registry.get(instance.workflow)
        if workflow is None or not workflow.takes_params:
            return cls()
        text = payloads.pretty_stored(Instance.objects.only("params").get(key=instance.key).params)
        if len(text) > LONGEST_SHOWN:
            return cls()
        schema: Any = workflow.params_schema()
        if "params" in request.POST:
            return cls(text, JsonForm.posted(schema, request.POST.dict()), is_typed=True)
        return cls(text, JsonForm.fresh(schema, text, request.GET.get("tab", "")))

    @property
    def is_changed(self) -> bool:
        return self.is_typed and self.form is not None and self.form.text.strip() != self.recorded.strip()

    @property
    def is_sent(self) -> bool:
        """Whether the instance is to be restarted: no button in the form was pressed."""
        return self.form is None or self.form.is_sent

    @property
    def unread(self) -> tuple[Problem, ...]:
        """What cannot be read. Only that is shown while the form is changed: the rest may not be filled in yet."""
        return () if self.form is None else self.form.problems

    def checked(self, instance: Instance) -> Checked:
        """Return the new params, or their problems; the value is UNCHANGED if they stay as they are."""
        if self.form is None or not self.is_typed:
            return Checked(UNCHANGED, ())
        if not self.is_changed:
            return Checked(UNCHANGED, self.form.problems)
        found = check_params(registry[instance.workflow], self.form.text)
        return Checked(found.value, tuple(self.form.placed([*self.form.problems, *found.problems])))

    @property
    def shown(self) -> JsonForm | None:
        """Return the form as it is shown again, without secrets that were typed."""
        return None if self.form is None else self.form.without_secrets()
