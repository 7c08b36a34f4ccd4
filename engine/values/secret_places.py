"""Find the secrets in a JSON document by the JSON Schema of its type, when the type itself is not available."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from engine.values.errors import ParamError
from engine.values.json_schema import validator_of
from engine.values.serialization import JSON, encode
from engine.values.serialization.envelope import MASK_REFUSED, enclose, is_mask
from engine.values.serialization.secret_schema import MARK, holds_secrets

Path = tuple[str | int, ...]
MOST_REFERENCES = 64  # references that lead to each other without a value in between
UNKNOWN = object()  # instead of a schema: the object has no such field, so its name may be misspelt


def secret_places(
    value: JSON, schema: Mapping[str, Any] | None, *, is_only_declared: bool = False
) -> list[Path]:
    """Return the paths of the secrets in a document. Of alternatives, those that match count, or all if none does.

    What may be a secret in the wrong place counts too, unless `is_only_declared`: a value of another shape than an
    object or list that has secrets, or a field that the schema does not name.
    """
    if schema is None or not holds_secrets(schema):
        return []
    search = _Search(schema, is_only_declared=is_only_declared)
    return list(dict.fromkeys(search.walk(schema, value, (), 0)))


def encrypted(value: JSON, schema: Mapping[str, Any] | None) -> JSON:
    """Return the document with its secrets encrypted."""
    made: JSON = _with(value, secret_places(value, schema), lambda one: enclose(encode(one, what="secret")))
    return made


def refused_masks(value: JSON, schema: Mapping[str, Any] | None) -> list[ParamError]:
    """Return an error for each secret whose value is only a mask."""
    return [
        ParamError(path="/".join(map(str, path)), message=MASK_REFUSED, code="secret_mask")
        for path in secret_places(value, schema)
        if is_mask(_at(value, path))
    ]


class _Search:
    def __init__(self, root: Mapping[str, Any], *, is_only_declared: bool = False) -> None:
        self._root = root
        self._is_only_declared = is_only_declared
        self._validator = validator_of(root)

    def walk(self, node: Any, value: Any, path: Path, references: int) -> Iterator[Path]:
        if not isinstance(node, Mapping) or references > MOST_REFERENCES:
            return
        if node.get(MARK) is True or (_has_other_shape(node, value) and self._may_be_secret(node)):
            yield path
            return
        for other in self._also(node, value):
            yield from self.walk(other, value, path, references + 1)
        parts = _members(node, value) if isinstance(value, dict) else _items(node, value)
        for key, inner, item in parts:
            if inner is not UNKNOWN:
                yield from self.walk(inner, item, (*path, key), 0)
            elif self._may_be_secret(node):
                yield (*path, key)

    def _may_be_secret(self, node: Any) -> bool:
        return not self._is_only_declared and self._reaches_secret(node, set())

    def _reaches_secret(self, node: Any, seen: set[str]) -> bool:
        if isinstance(node, list):
            return any(self._reaches_secret(one, seen) for one in node)
        if not isinstance(node, Mapping):
            return False
        if node.get(MARK) is True:
            return True
        reference = str(node.get("$ref", ""))
        if reference and reference not in seen:
            seen.add(reference)
            if self._reaches_secret(self._target(reference), seen):
                return True
        return any(self._reaches_secret(part, seen) for key, part in node.items() if key != "$defs")

    def _also(self, node: Mapping[str, Any], value: Any) -> Iterator[Any]:
        """Yield the other schemas that apply to the value."""
        if "$ref" in node:
            yield self._target(str(node["$ref"]))
        yield from node.get("allOf") or ()
        for word in ("anyOf", "oneOf"):
            options = node.get(word) or ()
            yield from [one for one in options if self._fits(one, value)] or options

    def _target(self, reference: str) -> Any:
        found: Any = self._root
        for part in reference.removeprefix("#/").split("/"):
            found = (
                found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
            )
        return found

    def _fits(self, schema: Any, value: Any) -> bool:
        """Return whether an alternative matches. If in doubt, it does, so that its secrets are covered."""
        try:
            return bool(self._validator.evolve(schema=schema).is_valid(value))
        except re.error:  # a pydantic pattern that Python's `re` does not support
            return True


def _has_other_shape(node: Mapping[str, Any], value: Any) -> bool:
    """Return whether the value is not the list or object of the schema: it may be meant as a secret."""
    wanted = {"array": list, "object": dict}.get(str(node.get("type")))
    return wanted is not None and value is not None and not isinstance(value, wanted)


def _members(node: Mapping[str, Any], value: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    named, patterns = node.get("properties") or {}, node.get("patternProperties") or {}
    others = node.get("additionalProperties") or (UNKNOWN if named else None)
    for key, item in value.items():
        schemas = [named[key]] if key in named else []
        schemas += [schema for pattern, schema in patterns.items() if _matches(pattern, key)]
        for schema in schemas or [others]:
            yield key, schema, item


def _matches(pattern: str, key: str) -> bool:
    """Return whether a pattern matches. If in doubt, it does, so that its secrets are covered."""
    try:
        return re.search(pattern, key) is not None
    except re.error:  # a pydantic pattern that Python's `re` does not support
        return True


def _items(node: Mapping[str, Any], value: Any) -> Iterator[tuple[int, Any, Any]]:
    if isinstance(value, list):
        first = node.get("prefixItems") or []
        for index, item in enumerate(value):
            yield index, first[index] if index < len(first) else node.get("items"), item


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value


def _with(value: Any, paths: list[Path], change: Callable[[Any], Any]) -> Any:
    """Return a copy with the values at these paths changed, in one pass: a list may hold thousands of secrets."""
    inner: dict[str | int, list[Path]] = {}
    for path in paths:
        if not path:
            return change(value)
        inner.setdefault(path[0], []).append(path[1:])
    copied = copy.copy(value)
    for head, rest in inner.items():
        copied[head] = _with(value[head], rest, change)
    return copied
