"""Build the controls of a form from a JSON Schema and a document.

Every document has a form: what no input can show is a text of JSON, only there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.values.json_schema import validator_of
from studio.forms import controls, schema
from studio.forms.controls import Choice, Control
from studio.forms.document import MISSING, Path, dump, pointer
from studio.forms.inputs import input_for, shows
from studio.forms.shape import Shape, shape_of

MOST_INPUTS = 960  # of one form: Django takes 1,000, and a page has a few of its own
# The most inputs of a field: value, zone and null. An entry of a map has a name, too.
FIELD, ENTRY = 3, 4
DEEPEST = 8


def build(root: Mapping[str, Any], document: Any, picks: Mapping[str, int] | None = None) -> Control:
    """Return the controls of a document. `picks` are the alternatives that people chose, by pointer."""
    return _Builder(root, picks or {}).control(root, document, (), is_required=True, seen=frozenset())


class _Builder:
    def __init__(self, root: Mapping[str, Any], picks: Mapping[str, int]) -> None:
        self._root = root
        self._picks = picks
        self._left = MOST_INPUTS - FIELD

    def control(
        self,
        node: Any,
        value: Any,
        path: Path,
        *,
        is_required: bool,
        seen: frozenset[str],
        is_member: bool = False,
    ) -> Control:
        """Return the control of a node. There must be room for a field; what it does not need is given back."""
        made = self._made(node, value, path, is_required=is_required, seen=seen, is_member=is_member)
        self._left += FIELD - made.inputs
        return made

    def _made(
        self, node: Any, value: Any, path: Path, *, is_required: bool, seen: frozenset[str], is_member: bool
    ) -> Control:
        shape = shape_of(self._root, node, seen)
        about = shape.about
        blank = Control(
            path,
            shape.kind,
            controls.label_of(node, path),
            is_required,
            help=str(about.get("description") or "") if path else "",
            rules=controls.rules_of(about),
            example=controls.example_of(about, value),
            shape=shape.kind if shape.kind != "secret" else str(about.get("type")),
            is_nullable=shape.is_nullable,
            is_member=is_member,
            source=shape,
        )
        default = controls.default_of(about, value)
        blank = replace(blank, rules=(*blank.rules, default)) if default else blank
        if shape.kind in ("group", "list", "map", "union"):
            return self._compound(blank, shape, value)
        if shape.kind == "json" or not shows(shape, value):
            return self._json(blank, shape, value)
        return input_for(blank, shape, value)

    def _compound(self, blank: Control, shape: Shape, value: Any) -> Control:
        path, is_root = blank.path, not blank.path
        if value is MISSING or (value is None and shape.is_nullable):
            if not is_root or shape.kind == "union":
                return replace(blank, kind="add", is_null=value is None)
            value = {} if shape.kind in ("group", "map") else []
        build = {"group": self._group, "list": self._list, "map": self._map, "union": self._union}[shape.kind]
        made = build(blank, shape, value) if len(path) < DEEPEST else None
        if made is None:
            return self._json(blank, shape, value)
        return replace(made, is_extra=not is_root and (not blank.is_required or blank.is_nullable))

    def _group(self, blank: Control, shape: Shape, value: Any) -> Control | None:
        properties, required = shape.about["properties"], shape.about.get("required") or ()
        if not isinstance(value, dict) or not self._has_room(FIELD * len(properties)):
            return None
        children = tuple(
            self.control(
                node,
                value.get(name, MISSING),
                (*blank.path, name),
                is_required=name in required,
                seen=shape.references,
            )
            for name, node in properties.items()
        )
        unknown = tuple(name for name in value if name not in properties)
        return replace(blank, kind="group", children=children, unknown=unknown)

    def _list(self, blank: Control, shape: Shape, value: Any) -> Control | None:
        if not isinstance(value, list) or not self._has_room(FIELD * len(value)):
            return None
        count = len(value)
        children = tuple(
            replace(
                self._member(shape.about["items"], item, (*blank.path, at), shape),
                item=(at + 1, count),
            )
            for at, item in enumerate(value)
        )
        is_full = count >= shape.about.get("maxItems", MOST_INPUTS)
        return replace(blank, kind="list", children=children, is_full=is_full)

    def _map(self, blank: Control, shape: Shape, value: Any) -> Control | None:
        if not isinstance(value, dict) or not self._has_room(ENTRY * len(value)):
            return None
        node = shape.about["additionalProperties"]
        children = tuple(
            replace(
                self._member(node, item, (*blank.path, name), shape),
                key=name,
                label="Value",
            )
            for name, item in value.items()
        )
        return replace(blank, kind="map", children=children)

    def _member(self, node: Any, value: Any, path: Path, around: Shape) -> Control:
        return self.control(node, value, path, is_required=True, seen=around.references, is_member=True)

    def _union(self, blank: Control, shape: Shape, value: Any) -> Control | None:
        if not self._has_room(FIELD):
            return None
        picked = self._picks.get(pointer(blank.path), -1)
        if not (0 <= picked < len(shape.options) and self._may_be(shape.options[picked], value)):
            picked = self._best(shape, value)
        # The alternative has the label of the union above it.
        child = self.control(
            shape.options[picked],
            value,
            blank.path,
            is_required=True,
            seen=shape.references,
            is_member=blank.is_member,
        )
        choices = tuple(
            Choice(str(number), self._name(node, number)) for number, node in enumerate(shape.options)
        )
        # What names the alternative is chosen above it.
        fields = tuple(one for one in child.children if one.kind != "fixed" or child.kind != "group")
        child = replace(child, label=blank.label, is_alternative=True, is_extra=False, children=fields)
        return replace(
            blank, kind="union", children=(child,), picked=picked, chosen=str(picked), choices=choices
        )

    def _may_be(self, node: Any, value: Any) -> bool:
        """Return whether the value has the JSON type of an alternative."""
        kind = shape_of(self._root, node).kind
        wanted: Any = {"group": dict, "map": dict, "list": list, "text": str}.get(kind)
        return wanted is None or isinstance(value, wanted)

    def _best(self, shape: Shape, value: Any) -> int:
        """Return the alternative that fits the value, or comes closest to it."""
        scores = [self._score(node, value) for node in shape.options]
        return scores.index(max(scores))

    def _score(self, node: Any, value: Any) -> float:
        if self._fits(node, value):
            return 1_000
        shape = shape_of(self._root, node)
        if shape.kind != "group" or not isinstance(value, dict):
            return 1 if self._may_be(node, value) else 0
        properties = shape.about["properties"]
        known = sum(name in properties for name in value)
        fixed = sum(
            isinstance(inner, Mapping) and "const" in inner and value.get(name) == inner["const"]
            for name, inner in properties.items()
        )
        return 2 + known + 100 * fixed - len(value) / 1_000

    def _fits(self, node: Any, value: Any) -> bool:
        try:
            return bool(validator_of(self._root).evolve(schema=node).is_valid(value))
        except re.error:  # a pydantic pattern that Python's `re` does not support
            return False

    def _name(self, node: Any, number: int) -> str:
        about = shape_of(self._root, node).about
        if about.get("title"):
            return str(about["title"])
        fields = schema.fields({"$defs": self._root.get("$defs", {}), **about})
        said = fields[0].type if len(fields) == 1 and not fields[0].name else str(about.get("type", ""))
        return said or f"Alternative {number + 1}"

    def _json(self, blank: Control, shape: Shape, value: Any) -> Control:
        fits = {"group": dict, "map": dict, "list": list, "union": object}.get(shape.kind)
        note = shape.reason
        if not note and shape.kind != "json":
            is_many = fits is not None and isinstance(value, fits)
            note = "It has too many fields for a form." if is_many else ""
            note = note or "The value is of another type than this field."
        text = "" if value is MISSING else dump(value)
        return replace(blank, kind="json", text=text, note=note)

    def _has_room(self, count: int) -> bool:
        if count > self._left:
            return False
        self._left -= count
        return True
