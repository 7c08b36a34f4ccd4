"""The buttons of the start form that save, overwrite and delete a template. They start nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.declare.registry import Workflow
from engine.status.sentences.bidi import isolated
from studio.models import StartTemplate
from studio.workflows.start_form import Typed
from studio.workflows.templates import queries, saving
from studio.workflows.templates.rules import Content, InvalidTemplateError, check_content

SAVE, OVERWRITE, DELETE = "template-save", "template-overwrite", "template-delete"
OPS = frozenset({SAVE, OVERWRITE, DELETE})
GONE = "This template no longer exists. What is in the form is still here: save it under a name."
DELETED = "This template was deleted before. The form is unchanged."
UNREADABLE = "The form has fields that cannot be read. Fix them first."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a button did. What was typed stays in the form, whatever it was."""

    slug: str = ""  # the template from which the form is now
    name: str = ""  # that was typed for a new one
    said: str = ""
    problem: str = ""
    field: str = ""  # with the problem


def press(workflow: Workflow[Any, Any], typed: Typed, user: Any) -> Outcome:
    """Do what the pressed button says. Raises RefusedError."""
    try:
        return _save(workflow, typed, user) if typed.form.op == SAVE else _of_chosen(workflow, typed, user)
    except InvalidTemplateError as error:
        return Outcome(typed.template, typed.template_name, problem=str(error), field=error.field)
    except StartTemplate.DoesNotExist:
        if typed.form.op == DELETE:
            return Outcome(name=typed.template_name, said=DELETED)
        return Outcome(name=typed.template_name, problem=GONE)


def _save(workflow: Workflow[Any, Any], typed: Typed, user: Any) -> Outcome:
    content = _content(typed)
    template = saving.save(workflow, typed.template_name, content, by=user)
    return Outcome(template.slug, said=f"Saved the template {isolated(template.name)}.{_secrets(content)}")


def _of_chosen(workflow: Workflow[Any, Any], typed: Typed, user: Any) -> Outcome:
    template = queries.find(user, workflow.name, typed.template)
    if template is None:
        raise StartTemplate.DoesNotExist
    name = isolated(template.name)
    if typed.form.op == DELETE:
        saving.delete(template, by=user)
        return Outcome(name=typed.template_name, said=f"Deleted the template {name}. The form is unchanged.")
    content = _content(typed)
    saving.overwrite(template, content, by=user)
    said = f"Overwrote the template {name} with these parameters.{_secrets(content)}"
    return Outcome(template.slug, typed.template_name, said)


def _content(typed: Typed) -> Content:
    """Return what the form has. A value that cannot be read would be lost, so nothing is saved."""
    if typed.form.problems:
        raise InvalidTemplateError("params", UNREADABLE)
    return check_content(typed.text, typed.form.root or {})


def _secrets(content: Content) -> str:
    return (
        f" Secrets are not stored ({content.left_out}): type them at each start." if content.secrets else ""
    )
