"""A form made from a JSON Schema: a control a field, and what was typed read back as one JSON value.

What has no control of its own is typed as JSON, that node alone: no schema is refused.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.values.errors import InvalidParamsError, InvalidValueError, LimitError, ParamError
from engine.values.json_schema import check
from studio import forms, payloads, schema, typed_secrets
from studio.forms import Checked, Problem

ROOT = "answer"
MOST_RADIOS = 4
DEEPEST = 3
LONG_TEXT = 120  # characters; a text that may be longer gets lines
_BOOLEANS = ((True, "Yes"), (False, "No"))
_DATES = {"date": "date", "time": "time", "email": "email", "password": "password"}
_NOTHING = object()  # typed: left out


@dataclass(frozen=True, slots=True)
class Control:
    """One input, or a group of them. `kind`: radio, select, number, text, area, json or group."""

    name: str
    label: str
    kind: str
    is_required: bool
    help: str = ""
    type: str = "text"
    choices: tuple[tuple[str, str], ...] = ()  # what is sent (JSON), what is read
    limits: tuple[tuple[str, str], ...] = ()  # min, max, step, maxlength
    rules: tuple[str, ...] = ()
    children: tuple[Control, ...] = ()
    nothing: object = _NOTHING  # what an empty input means: left out, or null
    fields: tuple[schema.Field, ...] = ()  # of JSON
    schema: Mapping[str, Any] | None = None  # of JSON
    has_default: bool = False
    is_secret: bool = False  # is never filled in
    text: str = ""
    problems: tuple[str, ...] = ()

    @property
    def may_be_left(self) -> bool:
        """Tell whether choosing nothing is a choice of its own: a default leaves nothing open."""
        return not self.is_required and not self.has_default

    @property
    def id(self) -> str:
        return self.name.replace("/", "-").replace(" ", "_")

    @property
    def key(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def path(self) -> str:
        """Where its value is in the answer, as errors name it."""
        return self.name.partition("/")[2]


def control_of(root: Mapping[str, Any] | None) -> Control:
    """Make the control of a whole answer."""
    return _control(root or {}, root or {}, ROOT, "", is_required=True, depth=0)


def read(
    control: Control, given: Mapping[str, str], schema_of_it: Mapping[str, Any] | None = None
) -> Checked:
    """Read the value that was typed, with all that is wrong with it: what cannot be read, and what the schema refuses
    of the rest."""
    problems: list[Problem] = []
    value = _read(control, given, problems)
    problems += _refused(control, value, schema_of_it, {problem.path for problem in problems})
    return Checked(None if value is _NOTHING else value, tuple(problems[: forms.MOST_PROBLEMS]))


def _refused(
    control: Control, value: Any, schema_of_it: Mapping[str, Any] | None, unread: Container[str]
) -> list[Problem]:
    """Ask the schema. What could not be read is missing in the value, and is not reported twice."""
    if value is _NOTHING:
        return []
    try:
        check(value, schema_of_it)
    except InvalidParamsError as error:
        return [problem for problem in placed(control, error.errors) if problem.path not in unread]
    except (InvalidValueError, LimitError) as error:
        return [Problem(ROOT, str(error))]
    return []


def filled(control: Control, given: Mapping[str, str], problems: Sequence[Problem] = ()) -> Control:
    """Put back what was typed, with what is wrong at its place."""
    wrong = dict.fromkeys(problem.message for problem in problems if problem.path == control.path)
    return replace(
        control,
        text=_sent_back(control, given.get(control.name, "")),
        problems=tuple(wrong),
        children=tuple(filled(child, given, problems) for child in control.children),
    )


def _sent_back(control: Control, text: str) -> str:
    """Return what was typed, but for secrets."""
    if control.children or control.is_secret:
        return ""
    return typed_secrets.hidden(text, control.schema) if control.kind == "json" else text


def placed(control: Control, errors: Sequence[ParamError]) -> list[Problem]:
    """Put the errors of a refused answer to the controls that they are about: the nearest one around the place."""
    names = {one.path for one in _all(control)}
    problems = []
    for error in errors[: forms.MOST_PROBLEMS]:
        path = error["path"]
        while path and path not in names:
            path = path.rpartition("/")[0]
        inner = error["path"].removeprefix(path).strip("/")
        message = f"{inner}: {error['message']}" if inner else error["message"]
        problems.append(Problem(ROOT, message, path))
    return problems


def _all(control: Control) -> Iterator[Control]:
    yield control
    for child in control.children:
        yield from _all(child)


def _control(
    root: Mapping[str, Any], node: Any, name: str, label: str, *, is_required: bool, depth: int
) -> Control:
    found, is_nullable = _innermost(root, node)
    own = node if isinstance(node, Mapping) else {}
    about = {**found, **own}
    made = _kind(root, found, name, depth)
    default = about.get("default")
    return replace(
        made,
        # The title of a type that is referred to is that of all its fields: two addresses would look the same.
        label=label and str(own.get("title") or label),
        help=str(about.get("description") or "") if depth or made.kind != "group" else "",
        is_required=is_required and not is_nullable,
        nothing=None if is_required and is_nullable else _NOTHING,
        has_default=default is not None,
        rules=tuple(schema.rules(about)) if made.kind in ("number", "text", "area") else (),
        text=made.text or ("" if default is None or made.is_secret else _typed(made, default)),
    )


def _kind(root: Mapping[str, Any], found: Mapping[str, Any], name: str, depth: int) -> Control:
    blank = Control(name, "", "json", is_required=True)
    if schema.is_secret(found):
        return _secret(blank, root, found)
    properties = found.get("properties")
    if properties and depth < DEEPEST and not any("/" in key for key in properties):
        required = found.get("required") or ()
        children = (
            _control(root, node, f"{name}/{key}", key, is_required=key in required, depth=depth + 1)
            for key, node in properties.items()
        )
        return replace(blank, kind="group", children=tuple(children))
    options = _options(found)
    if options:
        choices = tuple((json.dumps(value), word) for value, word in options)
        return replace(blank, kind="radio" if len(choices) <= MOST_RADIOS else "select", choices=choices)
    kinds = _types(found)
    if (kinds and kinds <= {"integer", "number"}) or kinds == {
        "number",
        "string",
    }:  # the last one is a Decimal
        step = "1" if kinds == {"integer"} else "any"
        return replace(blank, kind="number", type="number", limits=(("step", step), *_limits(found)))
    if kinds and kinds <= {"string", "integer"}:
        return _text(blank, found)
    whole = {**found, "$defs": root.get("$defs", {})} if found else {}
    text = payloads.pretty(schema.example(whole)) if depth == 0 and whole else ""
    return replace(blank, text=text, fields=tuple(schema.fields(whole)), schema=whole)


def _secret(blank: Control, root: Mapping[str, Any], found: Mapping[str, Any]) -> Control:
    """Make the control of a secret: its text is not seen while it is typed, where it is one text."""
    blank = replace(blank, is_secret=True)
    kinds = _types(found)
    if _options(found):
        choices = tuple((json.dumps(value), word) for value, word in _options(found))
        return replace(blank, kind="select", choices=choices)
    if kinds and kinds <= {"string", "integer", "number"}:
        return replace(blank, kind="text" if "string" in kinds else "number", type="password")
    whole = {**found, "$defs": root.get("$defs", {})}
    return replace(blank, fields=tuple(schema.fields(whole)))


def _text(blank: Control, found: Mapping[str, Any]) -> Control:
    kind = str(found.get("format", ""))
    is_long = not kind and found.get("maxLength", LONG_TEXT + 1) > LONG_TEXT
    limits = (("maxlength", str(found["maxLength"])),) if "maxLength" in found else ()
    return replace(blank, kind="area" if is_long else "text", type=_DATES.get(kind, "text"), limits=limits)


def _innermost(root: Mapping[str, Any], node: Any) -> tuple[Mapping[str, Any], bool]:
    """Step through references, and through the union of one type with null; tell whether null is taken."""
    found = schema.resolve(root, node)
    for word in ("anyOf", "oneOf"):
        options = found.get(word) or ()
        rest = [one for one in options if schema.resolve(root, one).get("type") != "null"]
        if len(rest) == 1:
            inner, _ = _innermost(root, rest[0])
            return {**inner, **{key: found[key] for key in ("title", "description") if key in found}}, len(
                options
            ) > 1
    if len(found.get("allOf") or ()) == 1:
        return _innermost(root, found["allOf"][0])
    return found, False


def _options(found: Mapping[str, Any]) -> tuple[tuple[Any, str], ...]:
    if found.get("type") == "boolean":
        return _BOOLEANS
    values = [found["const"]] if "const" in found else found.get("enum") or []
    is_plain = all(isinstance(value, str | int | float) for value in values)
    return tuple((value, str(value)) for value in values) if is_plain else ()


def _types(found: Mapping[str, Any]) -> set[str]:
    options = found.get("anyOf")
    if options:
        plain = all(
            isinstance(one, Mapping) and set(one) <= {"type", "pattern", "minimum", "maximum"}
            for one in options
        )
        return {str(one.get("type")) for one in options if one.get("type") != "null"} if plain else set()
    kind = found.get("type")
    return {kind} if isinstance(kind, str) else set()


def _limits(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for word, attribute in (("minimum", "min"), ("maximum", "max")):
        if isinstance(found.get(word), int | float):
            yield attribute, json.dumps(found[word])


def _typed(control: Control, value: Any) -> str:
    """Write a value as it would be typed."""
    if control.kind in ("text", "area"):
        return str(value)
    return payloads.pretty(value) if control.kind == "json" else json.dumps(value)


def _read(control: Control, given: Mapping[str, str], problems: list[Problem]) -> Any:
    if control.kind == "group":
        return _read_group(control, given, problems)
    text = given.get(control.name, "").replace("\r\n", "\n")
    if not text.strip():
        return _empty(control, text, problems)
    if control.kind in ("text", "area"):
        return text
    if control.choices:
        return _chosen(control, text, problems)
    checked = forms.read_text(text.strip(), control.name)
    if control.kind == "number" and (
        not checked.is_good or isinstance(checked.value, bool) or not isinstance(checked.value, int | float)
    ):
        problems.append(Problem(ROOT, "Enter a number.", control.path))
        return _NOTHING
    for problem in checked.problems:
        where = f"Line {problem.line}, column {problem.column}: " if problem.line else ""
        problems.append(Problem(ROOT, where + problem.message, control.path))
    return checked.value if checked.is_good else _NOTHING


def _read_group(control: Control, given: Mapping[str, str], problems: list[Problem]) -> Any:
    """Read an object. One that may be left out is, if nothing of it was typed."""
    if not control.is_required and not any(given.get(one.name, "").strip() for one in _all(control)):
        return control.nothing
    read = {child.key: _read(child, given, problems) for child in control.children}
    return {key: value for key, value in read.items() if value is not _NOTHING}


def _empty(control: Control, text: str, problems: list[Problem]) -> Any:
    if not control.is_required:
        return control.nothing
    if control.kind in ("text", "area") and not control.is_secret:
        return text  # whether it may be empty, the schema says
    problems.append(Problem(ROOT, "Choose one." if control.choices else "This is required.", control.path))
    return _NOTHING


def _chosen(control: Control, text: str, problems: list[Problem]) -> Any:
    if text in (sent for sent, _ in control.choices):
        return json.loads(text)
    problems.append(Problem(ROOT, "Choose one of these.", control.path))
    return _NOTHING
