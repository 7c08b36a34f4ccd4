"""What people type: parameters to start with, events to send, reasons. Checked without writing anything."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.declare import secrets
from engine.declare.registry import Workflow, declared_events
from engine.models import Instance
from engine.steer import launch
from engine.values.errors import (
    InvalidNameError,
    InvalidParamsError,
    InvalidValueError,
    LimitError,
    ParamError,
    SecretKeyError,
)
from engine.values.identity import check_event_type, check_instance_id, new_instance_id
from engine.values.serialization import InvalidJSON, decode, read_json
from engine.values.tags import check_tags
from studio import jsonplace

MOST_PROBLEMS = 20
CLOCKS_APART_MS = 5_000


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where. `start` and `end` mark it in the JSON text, counted as JavaScript counts."""

    field: str
    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Typed:
    """The start form as it was sent."""

    text: str
    id: str
    tags: str
    token: str

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Typed:
        return cls(
            text=given.get("params", "").replace("\r\n", "\n"),
            id=given.get("id", "").strip(),
            tags=given.get("tags", "").strip(),
            token=token_of(given.get("token", "")),
        )

    @property
    def tag_list(self) -> list[str]:
        return [tag.strip() for tag in self.tags.split(",") if tag.strip()]


@dataclass(frozen=True, slots=True)
class Checked:
    """What the form says, once it has been read: the value, or what is wrong with it."""

    value: Any
    problems: tuple[Problem, ...]

    @property
    def is_good(self) -> bool:
        return not self.problems

    def of(self, field: str) -> list[Problem]:
        return [problem for problem in self.problems if problem.field == field]


def check_start(workflow: Workflow[Any, Any], typed: Typed) -> Checked:
    """Check everything that can be checked before a start: syntax, schema, id, tags."""
    read = read_text(typed.text, "params", is_optional=not workflow.takes_params)
    problems = list(read.problems)
    if read.is_good:
        problems += _schema_problems(workflow, typed.text, read.value)
    problems += _id_problems(workflow, typed.id)
    problems += _tag_problems(typed.tag_list)
    return Checked(read.value, tuple(problems[:MOST_PROBLEMS]))


def check_event(type: str, text: str) -> Checked:
    """Check the type and the payload of an event; a declared event has its payload's type."""
    problems: list[Problem] = []
    try:
        check_event_type(type)
    except InvalidNameError as error:
        problems.append(Problem("type", str(error)))
    read = read_text(text, "payload", is_optional=True)
    problems += read.problems
    declared = declared_events.get(type)
    if read.is_good and declared is not None:
        try:
            declared.validate(read.value)
        except InvalidParamsError as error:
            problems += _placed(text, "payload", error.errors)
    return Checked(read.value, tuple(problems[:MOST_PROBLEMS]))


def read_text(text: str, field: str, *, is_optional: bool = False) -> Checked:
    """Read a JSON text; nothing at all is null where it may be left out."""
    if is_optional and not text.strip():
        return Checked(None, ())
    try:
        return Checked(read_json(text, what=field), ())
    except InvalidJSON as error:
        return Checked(None, (_syntax_problem(text, field, error),))
    except LimitError as error:
        return Checked(None, (Problem(field, str(error)),))
    except InvalidValueError as error:
        return Checked(None, (Problem(field, str(error), path=error.path),))


def already_started(workflow: Workflow[Any, Any], typed: Typed, value: Any, user: Any) -> Instance | None:
    """Find what this very form has started before: a double click, or a form sent again.

    The form brings the id that its instance gets, so the database itself lets it start once. Another person's
    instance, or one with other parameters, is another matter.
    """
    try:
        wanted = check_instance_id(typed.id or typed.token)
    except InvalidNameError:
        return None
    found = Instance.objects.filter(workflow=workflow.name, id=wanted).first()
    if found is None or found.started_by != user.get_username():
        return None
    try:
        same = secrets.are_equal(found.params, decode(launch.validate_params(workflow, value)))
    except SecretKeyError:  # nobody here can tell
        return None
    return found if same and (not typed.id or _is_younger(found, typed.token)) else None


def _is_younger(instance: Instance, token: str) -> bool:
    """Tell whether the instance began after the form was drawn: the token is a UUIDv7, which knows when."""
    drawn_ms = uuid.UUID(token).int >> 80
    return instance.created_at.timestamp() * 1000 >= drawn_ms - CLOCKS_APART_MS


def new_token() -> str:
    """Make the token of a form that is drawn now."""
    return new_instance_id()


def token_of(text: str) -> str:
    """Read the token that a form brings back; a new one in place of nonsense."""
    try:
        token = uuid.UUID(text)
    except ValueError:
        return new_instance_id()
    return str(token) if token.version == 7 else new_instance_id()


def _syntax_problem(text: str, field: str, error: InvalidJSON) -> Problem:
    lines = text.split("\n")
    line, column = error.line or 1, error.column or 1
    at = sum(len(one) + 1 for one in lines[: line - 1]) + column - 1
    start = jsonplace.utf16(text, min(at, len(text)))
    # At the end of the text there is nothing to underline: mark the last character.
    start = max(0, min(start, jsonplace.utf16(text, len(text)) - 1))
    return Problem(
        field, error.message, path=error.path, line=line, column=column, start=start, end=start + 1
    )


def _schema_problems(workflow: Workflow[Any, Any], text: str, value: Any) -> list[Problem]:
    try:
        launch.validate_params(workflow, value)
    except InvalidParamsError as error:
        return _placed(text, "params", error.errors)
    except InvalidValueError as error:
        return [Problem("params", str(error), path=error.path)]
    except LimitError as error:
        return [Problem("params", str(error))]
    return []


def _placed(text: str, field: str, errors: Sequence[ParamError]) -> list[Problem]:
    """Mark each wrong field at its place in the text."""
    if not text.strip():
        return [Problem(field, error["message"], path=error["path"]) for error in errors]
    problems = []
    find = jsonplace.finder(text)
    for error in errors[:MOST_PROBLEMS]:
        place = find([part for part in error["path"].split("/") if part])
        line, column = jsonplace.line_and_column(text, place.start)
        start, end = jsonplace.utf16(text, place.start), jsonplace.utf16(text, place.end)
        problems.append(Problem(field, error["message"], error["path"], line, column, start, end))
    return problems


def _id_problems(workflow: Workflow[Any, Any], id: str) -> list[Problem]:
    if not id:
        return []
    try:
        check_instance_id(id)
    except InvalidNameError as error:
        return [Problem("id", str(error))]
    if Instance.objects.filter(workflow=workflow.name, id=id).exists():
        return [Problem("id", f"{id} is in use. Choose another id, or leave it empty.")]
    return []


def _tag_problems(tags: Sequence[str]) -> list[Problem]:
    try:
        check_tags(tags)
    except (InvalidNameError, LimitError, InvalidValueError) as error:
        return [Problem("tags", str(error))]
    return []
