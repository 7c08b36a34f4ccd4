"""The start form: validate params, id and tags without writing."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils import timezone

from engine.declare import secrets
from engine.declare.registry import Workflow
from engine.models import Instance
from engine.steer import launch
from engine.steer.audit import shortened
from engine.values.errors import (
    InvalidNameError,
    InvalidParamsError,
    InvalidValueError,
    LimitError,
    SecretKeyError,
)
from engine.values.identity import check_instance_id, check_tags
from engine.values.serialization import decode
from studio.forms.checked import MOST_PROBLEMS, Checked, Problem
from studio.forms.json_form import JsonForm
from studio.forms.json_text import placed, read_text
from studio.forms.tokens import token_of
from studio.forms.typed_secrets import together
from studio.workflows.start_at import StartAt

CLOCKS_APART_MS = 5_000


@dataclass(frozen=True, slots=True)
class Typed:
    """The submitted start form."""

    form: JsonForm
    id: str
    tags: str
    token: str
    at: StartAt
    template: str = ""  # the slug of the one it began with
    template_name: str = ""  # of a new one

    @classmethod
    def of(cls, workflow: Workflow[Any, Any], given: Mapping[str, str]) -> Typed:
        return cls(
            form=JsonForm.posted(workflow.params_schema(), given),
            id=given.get("id", "").strip(),
            tags=given.get("tags", "").strip(),
            token=token_of(given.get("token", "")),
            at=StartAt.of(given),
            template=given.get("template", ""),
            template_name=given.get("template-name", ""),
        )

    @property
    def text(self) -> str:
        """The params as JSON."""
        return self.form.text

    @property
    def tag_list(self) -> list[str]:
        return [tag.strip() for tag in self.tags.split(",") if tag.strip()]


def check_start(workflow: Workflow[Any, Any], typed: Typed) -> Checked:
    """Validate everything before a start: syntax, schema, id, tags, time."""
    params = check_params(workflow, typed.text)
    wrong = typed.form.placed([*typed.form.problems, *params.problems])
    problems = [*wrong, *_id_problems(workflow, typed.id), *_tag_problems(typed.tag_list)]
    if when := typed.at.problem(timezone.now()):
        problems.append(Problem("at", when))
    return Checked(params.value, tuple(problems[:MOST_PROBLEMS]))


def check_params(workflow: Workflow[Any, Any], text: str) -> Checked:
    """Validate params: syntax and schema."""
    read = read_text(text, "params", is_optional=not workflow.takes_params)
    if not read.is_good:
        return read
    return Checked(read.value, tuple(_schema_problems(workflow, text, read.value)[:MOST_PROBLEMS]))


def already_started(workflow: Workflow[Any, Any], typed: Typed, value: Any, user: Any) -> Instance | None:
    """Return the instance that this form has already started, by a double click or when sent again.

    The form contains the id of its instance, so the database lets it start only once. An instance of another user or
    with other parameters or another time does not count.
    """
    try:
        wanted = check_instance_id(typed.id or typed.token)
    except InvalidNameError:
        return None
    found = Instance.objects.filter(workflow=workflow.name, id=wanted).first()
    if found is None or found.started_by != shortened(user.get_username()):
        return None
    try:
        same = secrets.are_equal(found.params, decode(launch.validate_params(workflow, value)))
    except SecretKeyError:  # cannot compare
        return None
    same = same and typed.at.is_of(found)
    return found if same and (not typed.id or _is_younger(found, typed.token)) else None


def without_secrets(
    workflow: Workflow[Any, Any], typed: Typed, checked: Checked, *, are_kept: bool = False
) -> tuple[Typed, Checked]:
    """Return the rejected form without secrets, and its problems.

    `are_kept`: what was typed into inputs of secrets stays in the page, and is not a mask there.
    """
    masked = replace(typed, form=typed.form.without_secrets())
    if masked.text == typed.text:
        return masked, checked
    again = check_start(workflow, masked)
    if are_kept:
        kept = typed.form.typed_secrets
        again = Checked(None, tuple(one for one in again.problems if one.target not in kept))
    return masked, Checked(None, together(again, checked))


def _is_younger(instance: Instance, token: str) -> bool:
    """Return whether the instance started after the form was rendered: the token is a UUIDv7 with that time."""
    drawn_ms = uuid.UUID(token).int >> 80
    return instance.created_at.timestamp() * 1000 >= drawn_ms - CLOCKS_APART_MS


def _schema_problems(workflow: Workflow[Any, Any], text: str, value: Any) -> list[Problem]:
    try:
        launch.validate_params(workflow, value)
    except InvalidParamsError as error:
        return placed(text, "params", error.errors)
    except InvalidValueError as error:
        return [Problem("params", str(error), path=error.path)]
    except LimitError as error:
        return [Problem("params", str(error))]
    return []


def _id_problems(workflow: Workflow[Any, Any], id: str) -> list[Problem]:
    if not id:
        return []
    try:
        check_instance_id(id)
    except InvalidNameError as error:
        return [Problem("id", str(error))]
    if Instance.objects.filter(workflow=workflow.name, id=id).exists():
        return [Problem("id", f"{id} is in use. Choose another ID, or leave it empty.")]
    return []


def _tag_problems(tags: Sequence[str]) -> list[Problem]:
    try:
        check_tags(tags)
    except (InvalidNameError, LimitError, InvalidValueError) as error:
        return [Problem("tags", str(error))]
    return []
