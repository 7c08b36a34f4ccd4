"""What the start form shows of templates: the list, the chosen one, and the name of a new one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.declare.registry import Workflow
from engine.values.serialization.secret_schema import holds_secrets
from studio.access.permissions import Verb, allowed
from studio.models import StartTemplate
from studio.models.start_template import LONGEST_NAME
from studio.workflows.start_form import Typed
from studio.workflows.templates import queries
from studio.workflows.templates.ops import Outcome
from studio.workflows.templates.rules import MOST_OF_A_WORKFLOW


@dataclass(frozen=True, slots=True)
class Panel:
    """The templates of a workflow, for a person who may start it."""

    all: list[StartTemplate]
    chosen: StartTemplate | None
    may_delete: bool  # the chosen one
    has_secrets: bool  # that templates are without
    name: str = ""
    done: Outcome = field(default_factory=Outcome)
    longest_name: int = LONGEST_NAME

    @property
    def is_open(self) -> bool:
        """Whether the part with the name is shown without a click."""
        return bool(self.name) or self.done.field == "name"


def panel_of(
    user: Any, workflow: Workflow[Any, Any], typed: Typed, done: Outcome | None = None
) -> Panel | None:
    """Return what to show; None for people who may not start the workflow, or if it takes no params."""
    root = typed.form.root
    if root is None or not allowed(user, Verb.OPERATE, workflow.name):
        return None
    done = done or Outcome(typed.template, typed.template_name)
    found = list(queries.seen_by(user, workflow.name).defer("params")[:MOST_OF_A_WORKFLOW])
    chosen = next((one for one in found if one.slug == done.slug), None)
    may_delete = chosen is not None and queries.may_delete(user, chosen)
    return Panel(found, chosen, may_delete, holds_secrets(root), done.name, done)
