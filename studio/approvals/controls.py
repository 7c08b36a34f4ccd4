"""A form made from a JSON Schema, with one control for each field.

Parts without a control of their own are typed as JSON, so any schema works.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from studio.display import payloads
from studio.forms import schema

ROOT = "answer"
MOST_RADIOS = 4
DEEPEST = 3
LONG_TEXT = 120  # characters; a text that may be longer gets a text area
LEAST_ROWS, MOST_ROWS = 2, 8  # of JSON
_BOOLEANS = ((True, "Yes"), (False, "No"))
MOMENT = "datetime-local"  # the type of an input; the time that is typed is in UTC
_DATES = {"date": "date", "time": "time", "date-time": MOMENT, "email": "email", "password": "password"}
NOTHING = object()  # typed: left out


@dataclass(frozen=True, slots=True)
class Control:
    """One input, or a group of them. `kind`: radio, select, number, text, area, json or group."""

    name: str
    label: str
    kind: str
    is_required: bool
    help: str = ""
    type: str = "text"
    choices: tuple[tuple[str, str], ...] = ()  # the value that is sent (JSON), and its label
    limits: tuple[tuple[str, str], ...] = ()  # min, max, step, maxlength
    rules: tuple[str, ...] = ()
    children: tuple[Control, ...] = ()
    nothing: object = NOTHING  # what an empty input means: left out, or null
    fields: tuple[schema.Field, ...] = ()  # of JSON
    schema: Mapping[str, Any] | None = None  # of JSON
    has_default: bool = False
    example: str = ""  # of JSON
    rows: int = 1  # of a text area
    is_secret: bool = False  # is never filled in
    text: str = ""
    problems: tuple[str, ...] = ()

    @property
    def may_be_left(self) -> bool:
        """Whether choosing nothing is a valid choice. With a default it is not."""
        return not self.is_required and not self.has_default

    @property
    def has_help(self) -> bool:
        return bool(self.help or self.rules)

    @property
    def is_moment(self) -> bool:
        return self.type == MOMENT

    @property
    def id(self) -> str:
        return self.name.replace("/", "-").replace(" ", "_")

    @property
    def key(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def path(self) -> str:
        """The path of its value in the answer, as errors give it."""
        return self.name.partition("/")[2]


def control_of(root: Mapping[str, Any] | None) -> Control:
    """Return the control for a whole answer."""
    return _control(root or {}, root or {}, ROOT, "", is_required=True, depth=0)


def within(control: Control) -> Iterator[Control]:
    """Yield a control and all controls inside it."""
    yield control
    for child in control.children:
        yield from within(child)


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
        # A title from a referenced type would label all its fields alike, such as two addresses.
        label=label and str(own.get("title") or label.replace("_", " ").capitalize()),
        help=str(about.get("description") or "") if depth or made.kind != "group" else "",
        is_required=is_required and not is_nullable,
        nothing=None if is_required and is_nullable else NOTHING,
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
    }:  # a Decimal
        step = "1" if kinds == {"integer"} else "any"
        return replace(blank, kind="number", type="number", limits=(("step", step), *_limits(found)))
    if kinds and kinds <= {"string", "integer"}:
        return _text(blank, found)
    whole = {**found, "$defs": root.get("$defs", {})} if found else {}
    text = payloads.pretty(schema.example(whole)) if depth == 0 and whole else ""
    example = _example(whole) if depth and whole else ""
    rows = max(LEAST_ROWS, min(MOST_ROWS, (text or example).count("\n") + 1))
    fields = tuple(schema.fields(whole))
    return replace(blank, text=text, example=example, rows=rows, fields=fields, schema=whole)


def _example(whole: Mapping[str, Any]) -> str:
    """Return an example as JSON, on one line if it is short; none of a secret."""
    if schema.is_secret_inside(whole, whole):
        return ""
    found = schema.example_of_one(whole)
    line = json.dumps(found, ensure_ascii=False)
    return line if len(line) <= LONG_TEXT else payloads.pretty(found)


def _secret(blank: Control, root: Mapping[str, Any], found: Mapping[str, Any]) -> Control:
    """Return the control for a secret. A single text is hidden while it is typed."""
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
    rows = 1 if "maxLength" not in found else 3
    return replace(
        blank, kind="area" if is_long else "text", type=_DATES.get(kind, "text"), limits=limits, rows=rows
    )


def _innermost(root: Mapping[str, Any], node: Any) -> tuple[Mapping[str, Any], bool]:
    """Resolve references, and a union of one type with null. Return the type, and whether null is allowed."""
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
    for option in (found, *(found.get("anyOf") or ())):
        for word, attribute in (("minimum", "min"), ("maximum", "max")):
            if isinstance(option.get(word), int | float):
                yield attribute, json.dumps(option[word])


def _typed(control: Control, value: Any) -> str:
    """Return a value as text in its control."""
    if control.type == MOMENT:
        return _in_utc(str(value))
    if control.kind in ("text", "area"):
        return str(value)
    return payloads.pretty(value) if control.kind == "json" else json.dumps(value)


def _in_utc(text: str) -> str:
    """Return a time as the input shows it: in UTC, without its zone."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    at = at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
    return at.isoformat(timespec="seconds" if at.second else "minutes")
