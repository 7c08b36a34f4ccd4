"""The controls of a form: a tree made from a JSON Schema and the document that the form edits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from studio.forms import schema
from studio.forms.document import MISSING, Path, dump, location, pointer
from studio.forms.shape import JSON_SHAPE, Shape

MOMENT = "datetime-local"
_MODES = {"email": "email", "uri": "url", "uri-reference": "url"}
_UNSAFE = re.compile(r"[^\w/-]")


@dataclass(frozen=True, slots=True)
class Choice:
    """A value to choose: as it is sent, and how it is called."""

    sent: str
    label: str


@dataclass(frozen=True, slots=True)
class Control:
    """One input, or a group of them.

    `kind`: text, area, number, moment, secret, radio, select, fixed, json, group, list, map, union, or add for a part
    that is not in the document.
    """

    path: Path
    kind: str
    label: str
    is_required: bool
    help: str = ""
    rules: tuple[str, ...] = ()
    example: str = ""
    type: str = "text"  # of the input
    text: str = ""  # what the document has, as the input shows it
    zone: str = ""  # of a moment
    choices: tuple[Choice, ...] = ()
    children: tuple[Control, ...] = ()
    unknown: tuple[str, ...] = ()  # names in the document that are not in the schema
    picked: int = 0  # of a union: the alternative that is shown
    chosen: str = ""  # of a union: the alternative that is selected
    new_name: str = ""  # of a map: typed, but not added yet
    shape: str = ""
    source: Shape = JSON_SHAPE  # of the schema
    is_nullable: bool = False
    is_null: bool = False
    is_extra: bool = False  # an optional part that is in the document, so it can be removed
    is_full: bool = False  # of a list: it can have no more items
    item: tuple[int, int] | None = None  # of an item of a list: its number, and how many there are
    key: str | None = None  # of an entry of a map: its name
    is_member: bool = False  # of a list or map, or an alternative in its place
    before: str = ""  # of a secret: the pointer at which it was on the page before
    is_alternative: bool = False  # of a union, which has the label
    note: str = ""  # why it is JSON
    problems: tuple[str, ...] = ()
    has_focus: bool = False

    @property
    def name(self) -> str:
        return pointer(self.path)

    @property
    def id(self) -> str:
        # The alternative of a union has the same path.
        return f"{id_of(self.path)}.any" if self.kind == "union" else id_of(self.path)

    @property
    def where(self) -> str:
        """Its path as problems give it."""
        return location(self.path)

    @property
    def has_mark(self) -> bool:
        """Whether its label says that it is required; items and entries can be removed instead."""
        return self.is_required and not self.is_member and not self.is_alternative

    @property
    def described(self) -> str:
        """The ids of what says more about it."""
        return " ".join([f"{self.id}-help"] * self.has_help + [f"{self.id}-problem"] * bool(self.problems))

    @property
    def has_help(self) -> bool:
        return bool(self.help or self.rules or self.example or self.note) or self.kind == "secret"

    @property
    def first_choice(self) -> str:
        """The choice that has the focus: the one that is chosen, or else the first."""
        sent = [one.sent for one in self.choices]
        return self.text if self.text in sent else sent[0]

    @property
    def inputs(self) -> int:
        """How many values a browser sends for it, without those of its children and its name."""
        own = {"group": 0, "list": 0, "fixed": 0, "add": 0, "union": 2, "moment": 2}.get(self.kind, 1)
        return own + self.may_be_null

    @property
    def is_optional(self) -> bool:
        return not self.is_required

    @property
    def rows(self) -> int:
        """The height of a text area."""
        return max(3 if self.kind == "json" else 2, min(12, self.text.count("\n") + 1))

    @property
    def mode(self) -> str:
        """Which keyboard a phone shows."""
        if self.shape == "integer" and self.source.about.get("minimum", -1) >= 0:
            return "numeric"
        return _MODES.get(str(self.source.about.get("format", "")), "") if self.kind == "text" else ""

    @property
    def has_seconds(self) -> bool:
        return self.type in (MOMENT, "time")

    @property
    def is_compound(self) -> bool:
        return self.kind in ("group", "list", "map", "union")

    @property
    def is_first(self) -> bool:
        return self.item is not None and self.item[0] == 1

    @property
    def is_last(self) -> bool:
        return self.item is not None and self.item[0] == self.item[1]

    @property
    def may_be_null(self) -> bool:
        """Whether a box beside the input says null; choices have a choice for it."""
        return self.is_nullable and self.kind in ("text", "area", "number", "moment")


def within(control: Control) -> Iterator[Control]:
    """Yield a control and all controls inside it."""
    yield control
    for child in control.children:
        yield from within(child)


def id_of(path: Path) -> str:
    """Return the id of the input at a path."""
    return "f" + _UNSAFE.sub(lambda found: f".{ord(found[0]):x}.", pointer(path))


def label_of(node: Any, path: Path) -> str:
    """Return the title of a field, or its name in words; of an item its number.

    A title from a referenced type would label all its fields alike, such as two addresses.
    """
    last = path[-1] if path else ""
    if isinstance(last, int):
        return f"Item {last + 1}"
    own = node if isinstance(node, Mapping) else {}
    return str(own.get("title") or last.replace("_", " ").capitalize() or "Parameters")


def rules_of(about: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the limits of a field in words."""
    return tuple(schema.rules(about))


def example_of(about: Mapping[str, Any], shown: Any) -> str:
    """Return the first example of the schema, unless the field shows it."""
    examples = about.get("examples")
    if not isinstance(examples, list) or not examples or examples[0] == shown:
        return ""
    return examples[0] if isinstance(examples[0], str) else dump(examples[0])


def default_of(about: Mapping[str, Any], shown: Any) -> str:
    """Return the default of the schema in words, unless the field shows it."""
    default = about.get("default", MISSING)
    if default is MISSING or default is None or default == shown or isinstance(default, dict | list):
        return ""
    word = {True: "yes", False: "no"}.get(default) if isinstance(default, bool) else None
    if isinstance(default, str):
        return f"default: {default or 'empty'}"
    return f"default: {word or dump(default)}"
