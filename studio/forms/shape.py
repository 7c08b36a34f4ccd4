"""What a node of a JSON Schema asks for, as far as a form can show it. Any other node is typed as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from studio.forms import schema

# Rules that no input can keep to. `check` still knows them, so such a node is typed as JSON.
ODD = frozenset(
    [
        "not",
        "if",
        "then",
        "else",
        "patternProperties",
        "dependentSchemas",
        "dependentRequired",
        "dependencies",
        "prefixItems",
        "contains",
        "unevaluatedProperties",
        "unevaluatedItems",
        "$dynamicRef",
        "additionalItems",
    ]
)
_BESIDE_A_UNION = frozenset(
    [
        "anyOf",
        "oneOf",
        "title",
        "description",
        "default",
        "examples",
        "discriminator",
        "$defs",
        "deprecated",
        "readOnly",
        "$schema",
        "$id",
    ]
)


@dataclass(frozen=True, slots=True)
class Shape:
    """`kind`: text, integer, number, decimal, choice, group, list, map, union, secret or json."""

    kind: str
    about: Mapping[str, Any] = field(default_factory=dict)  # the node, with references resolved
    is_nullable: bool = False
    options: tuple[Any, ...] = ()  # of a union: nodes; of a choice: values
    references: frozenset[str] = frozenset()  # followed on the way to this node
    reason: str = ""  # why it is JSON


JSON_SHAPE = Shape("json")  # of which nothing is known


def shape_of(root: Mapping[str, Any], node: Any, seen: frozenset[str] = frozenset()) -> Shape:
    """Return the shape of a node. `seen` are the references that lead to it."""
    about, seen, is_recursive = _resolved(root, node, seen)
    if is_recursive:
        return Shape("json", about, references=seen, reason="It may contain itself.")
    if schema.is_secret(about):
        return _secret(root, about, seen)
    if ODD & about.keys() or len(about.get("allOf") or ()) > 1:
        return Shape("json", about, references=seen, reason="Its rules cannot be shown as fields.")
    if about.get("allOf"):
        rest = {key: value for key, value in about.items() if key != "allOf"}
        return shape_of(root, {**_mapping(schema.resolve(root, about["allOf"][0])), **rest}, seen)
    for word in ("anyOf", "oneOf"):
        if about.get(word):
            return _union(root, about, word, seen)
    return _plain(about, seen)


def _resolved(
    root: Mapping[str, Any], node: Any, seen: frozenset[str]
) -> tuple[Mapping[str, Any], frozenset[str], bool]:
    own: dict[str, Any] = {}
    while isinstance(node, Mapping) and "$ref" in node:
        reference = str(node["$ref"])
        own = {**node, **own}
        if reference in seen:
            return {**_mapping(schema.resolve(root, node)), **_without_reference(own)}, seen, True
        seen |= {reference}
        node = _target(root, reference)
    return {**_mapping(node), **_without_reference(own)}, seen, False


def _without_reference(node: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key != "$ref"}


def _mapping(node: Any) -> Mapping[str, Any]:
    return node if isinstance(node, Mapping) else {}


def _target(root: Mapping[str, Any], reference: str) -> Any:
    target: Any = root
    for part in filter(None, reference.removeprefix("#").split("/")):
        part = part.replace("~1", "/").replace("~0", "~")
        target = target.get(part) if isinstance(target, Mapping) else None
    return target


def _secret(root: Mapping[str, Any], about: Mapping[str, Any], seen: frozenset[str]) -> Shape:
    if about.get("type") in ("string", "integer", "number") and not about.get("enum"):
        return Shape("secret", about, references=seen)
    return Shape(
        "json",
        about,
        references=seen,
        reason="A secret of more than one value is typed as JSON.",
    )


def _union(root: Mapping[str, Any], about: Mapping[str, Any], word: str, seen: frozenset[str]) -> Shape:
    nodes = list(about[word])
    rest = [one for one in nodes if _mapping(schema.resolve(root, one)).get("type") != "null"]
    is_nullable = len(rest) < len(nodes)
    if about.keys() - _BESIDE_A_UNION or not rest:
        return Shape("json", about, references=seen, reason="Its rules cannot be shown as fields.")
    own = {key: value for key, value in about.items() if key != word and key != "discriminator"}
    kinds = [_mapping(schema.resolve(root, one)).get("type") for one in rest]
    if len(rest) == 2 and {*kinds} == {"number", "string"}:
        return Shape("decimal", {**about, **own}, is_nullable, references=seen)
    if len(rest) > 1:
        options = [inner for one in rest for inner in _alternatives(root, one, seen)]
        is_nullable = is_nullable or any(one is None for one in options)
        return Shape("union", about, is_nullable, tuple(one for one in options if one is not None), seen)
    inner = shape_of(root, rest[0], seen)
    return Shape(
        inner.kind,
        {**inner.about, **own},
        is_nullable or inner.is_nullable,
        inner.options,
        inner.references,
        inner.reason,
    )


def _alternatives(root: Mapping[str, Any], node: Any, seen: frozenset[str]) -> list[Any]:
    """Return an alternative, or those of a union inside a union: one choice, not two of the same name. None is null."""
    inner = shape_of(root, node, seen)
    if inner.kind != "union":
        return [node]
    return [*inner.options, None] if inner.is_nullable else [*inner.options]


def _plain(about: Mapping[str, Any], seen: frozenset[str]) -> Shape:
    kind, is_nullable = about.get("type"), False
    if isinstance(kind, list):
        is_nullable = "null" in kind
        kinds = [one for one in kind if one != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    values = _values(about, kind)
    if values is not None:
        is_nullable = is_nullable or None in values
        options = tuple(value for value in values if value is not None)
        return Shape("choice", about, is_nullable, options, seen)
    if kind == "array" and isinstance(about.get("items"), Mapping):
        return Shape("list", about, is_nullable, references=seen)
    if isinstance(about.get("properties"), Mapping) and about["properties"] and kind in ("object", None):
        return Shape("group", about, is_nullable, references=seen)
    others = about.get("additionalProperties")
    if kind == "object" and isinstance(others, Mapping) and others:
        return Shape("map", about, is_nullable, references=seen)
    if kind in ("string", "integer", "number"):
        return Shape("text" if kind == "string" else str(kind), about, is_nullable, references=seen)
    return Shape("json", about, is_nullable, references=seen)


def _values(about: Mapping[str, Any], kind: Any) -> list[Any] | None:
    if "const" in about:
        return [about["const"]] if _is_scalar(about["const"]) else None
    if isinstance(about.get("enum"), list):
        return list(about["enum"]) if all(map(_is_scalar, about["enum"])) else None
    return [True, False] if kind == "boolean" else None


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)
