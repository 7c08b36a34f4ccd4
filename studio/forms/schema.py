"""A JSON Schema for users: rows to read, and an example to start from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.values.serialization.envelope import MASK
from engine.values.serialization.secret_schema import MARK

DEEPEST = 6
MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a schema, as pages list it."""

    name: str
    depth: int
    type: str
    is_required: bool
    description: str
    rules: tuple[str, ...]


def fields(schema: Mapping[str, Any] | None) -> list[Field]:
    """Return the fields of a schema, each followed by its nested fields."""
    if not schema:
        return []
    rows = list(_properties(schema, schema, 0))
    return (rows or [_field("", schema, schema, 0, is_required=True)])[:MOST_ROWS]


def example(schema: Mapping[str, Any] | None) -> Any:
    """Return an example made of defaults, examples and types. It shows the structure and may be invalid."""
    return _example(schema, schema, 0) if schema else {}


def example_of_one(schema: Mapping[str, Any]) -> Any:
    """Return an example in which a list has an item and a text is not empty."""
    found = resolve(schema, schema)
    made = _example(schema, schema, 0)
    if found.get("type") == "array" and isinstance(found.get("items"), Mapping) and not made:
        made = [_example(schema, found["items"], 1)]
    return _with_texts(made)


def _with_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_texts(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_texts(one) for one in value]
    return "text" if value == "" else value


def _properties(root: Mapping[str, Any], node: Mapping[str, Any], depth: int) -> Iterator[Field]:
    node = resolve(root, node)
    required = node.get("required") or []
    for name, inner in (node.get("properties") or {}).items():
        yield _field(name, root, inner, depth, is_required=name in required)
        if depth < DEEPEST:
            yield from _properties(root, _innermost(root, inner), depth + 1)


def _field(name: str, root: Mapping[str, Any], node: Any, depth: int, *, is_required: bool) -> Field:
    found = resolve(root, node)
    description = (
        (node.get("description") if isinstance(node, Mapping) else "") or found.get("description") or ""
    )
    return Field(name, depth, _type(root, node), is_required, str(description), tuple(_rules(node, found)))


def is_secret(node: Mapping[str, Any]) -> bool:
    """Return whether a value of this schema is stored encrypted and never shown."""
    return node.get(MARK) is True


def is_secret_inside(root: Mapping[str, Any], node: Any, seen: set[str] | None = None) -> bool:
    """Return whether a value is a secret, or a list or union of secrets. Does not look at the fields of objects.

    `seen` are the references already followed: a type may contain itself.
    """
    seen, reference = set() if seen is None else seen, _reference(node)
    if reference in seen and not is_secret(node):
        return False
    seen.update([reference] if reference else [])
    node = resolve(root, node)
    inner = [node.get("items"), node.get("additionalProperties"), *(node.get("prefixItems") or [])]
    options = [one for word in ("anyOf", "oneOf", "allOf") for one in node.get(word) or []]
    return is_secret(node) or any(is_secret_inside(root, one, seen) for one in (*inner, *options) if one)


def _type(root: Mapping[str, Any], node: Any, seen: frozenset[str] = frozenset()) -> str:
    reference = _reference(node)
    if reference in seen and not is_secret(node):
        return reference.rpartition("/")[2]
    seen, node = seen | {reference} if reference else seen, resolve(root, node)
    if is_secret(node):
        return f"secret {node.get('type', 'value')}"
    for word in ("anyOf", "oneOf"):
        if node.get(word):
            return " or ".join(dict.fromkeys(_type(root, option, seen) for option in node[word]))
    if "const" in node:
        return repr(node["const"])
    if node.get("enum"):
        return " | ".join(str(value) for value in node["enum"][:12])
    kind = node.get("type", "any")
    if kind == "array":
        items = node.get("items")
        return f"list of {_type(root, items, seen)}" if isinstance(items, Mapping) else "list"
    if isinstance(kind, list):
        return " or ".join(map(str, kind))
    return f"{kind} ({node['format']})" if node.get("format") else str(kind)


_BOUNDS = (
    ("minimum", "at least"),
    ("exclusiveMinimum", "more than"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "less than"),
)
_SIZES = {"character": ("minLength", "maxLength"), "item": ("minItems", "maxItems")}


def _rules(node: Any, found: Mapping[str, Any]) -> Iterator[str]:
    both = {**found, **(node if isinstance(node, Mapping) else {})}
    yield from rules(both)
    if "default" in both and both["default"] is not None:
        yield _default(both["default"])


def _default(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"default: {'none' if isinstance(value, list) else 'empty'}" if not value else "has a default"
    if isinstance(value, bool):
        return f"default: {'yes' if value else 'no'}"
    return "default: empty" if value == "" else f"default: {json.dumps(value, ensure_ascii=False)}"


def rules(both: Mapping[str, Any]) -> list[str]:
    """Say in a few words what a value must keep to, each rule once."""
    options = [both, *(both.get("anyOf") or [])]
    found = [rule for option in options for rule in _rules_of(option)]
    # The pattern of a decimal number as text says nothing more than its limits.
    if not {"number", "string"} <= {str(option.get("type")) for option in options}:
        examples = [one for option in options for one in option.get("examples") or ()]
        found += [_pattern(str(option["pattern"]), examples) for option in options if "pattern" in option]
    return list(dict.fromkeys(found))


def _rules_of(option: Mapping[str, Any]) -> Iterator[str]:
    least, most = option.get("minimum"), option.get("maximum")
    if least is not None and most is not None:
        yield f"{_number(least)} to {_number(most)}"
    for word, said in _BOUNDS:
        if word in option and not (word in ("minimum", "maximum") and None not in (least, most)):
            yield f"{said} {_number(option[word])}"
    for unit, (fewest, longest) in _SIZES.items():
        if fewest in option or longest in option:
            yield _size(option.get(fewest), option.get(longest), unit)


def _pattern(pattern: str, examples: Sequence[Any]) -> str:
    return f"matches {pattern}" + (f", such as {examples[0]}" if examples else "")


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,}"


def _size(least: int | None, most: int | None, unit: str) -> str:
    if least is not None and most is not None and least != most:
        return f"{least} to {most} {unit}s"
    bound = "" if least == most else "at least " if most is None else "at most "
    number = most if least is None else least
    return f"{bound}{number} {unit}{'' if number == 1 else 's'}"


def _innermost(root: Mapping[str, Any], node: Any, seen: frozenset[str] = frozenset()) -> Mapping[str, Any]:
    """Resolve lists and unions to the object that has fields, if there is one."""
    reference = _reference(node)
    if reference in seen:
        return {}
    seen, node = seen | {reference} if reference else seen, resolve(root, node)
    if isinstance(node.get("items"), Mapping):
        return _innermost(root, node["items"], seen)
    for option in [*(node.get("anyOf") or []), *(node.get("oneOf") or [])]:
        inner = _innermost(root, option, seen)
        if inner.get("properties"):
            return inner
    return node


def _reference(node: Any) -> str:
    return str(node.get("$ref", "")) if isinstance(node, Mapping) else ""


def resolve(root: Mapping[str, Any], node: Any) -> Mapping[str, Any]:
    """Resolve references. A secret stays a secret."""
    mark: dict[str, bool] = {}
    for _ in range(DEEPEST):
        if not isinstance(node, Mapping) or "$ref" not in node:
            break
        mark = {MARK: True} if is_secret(node) else mark
        target: Any = root
        for part in str(node["$ref"]).removeprefix("#/").split("/"):
            target = target.get(part, {}) if isinstance(target, Mapping) else {}
        node = target
    return {**node, **mark} if isinstance(node, Mapping) else {}


def _example(root: Mapping[str, Any] | None, node: Any, depth: int) -> Any:
    root = root or {}
    if is_secret(resolve(root, node)):
        return MASK  # must be replaced: the mask itself is rejected
    for given in (node, resolve(root, node)):
        if isinstance(given, Mapping):
            if "default" in given:
                return given["default"]
            if given.get("examples"):
                return given["examples"][0]
            if "const" in given:
                return given["const"]
            if given.get("enum"):
                return given["enum"][0]
    found = resolve(root, node)
    if depth > DEEPEST:
        return None
    for word in ("anyOf", "oneOf", "allOf"):
        if found.get(word):
            return _example(root, found[word][0], depth + 1)
    if found.get("properties") or found.get("type") == "object":
        needed = found.get("required") or ()
        return {
            name: _example(root, inner, depth + 1)
            for name, inner in (found.get("properties") or {}).items()
            if name in needed or not is_secret(resolve(root, inner))
        }
    if found.get("type") == "array":
        one = _example(root, found["items"], depth + 1) if isinstance(found.get("items"), Mapping) else None
        return [one] if found.get("minItems", 0) > 0 and one is not None else []
    least = found.get("minimum", found.get("exclusiveMinimum", -1) + 1)
    return {"string": "", "integer": least, "number": least, "boolean": False}.get(str(found.get("type")))
