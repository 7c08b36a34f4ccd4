"""Which parts of a type's schema hold secrets: what is stored of them is written by us alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]
# Values of the user's, and notes of pydantic's, that only look like schemas.
OPAQUE = frozenset({"default", "expected", "members", "metadata", "config", "cls", "ref", "schema_ref"})

_WITH_KEYS = frozenset({"dict", "ordered-dict", "defaultdict", "counter"})


class Holders:
    """Tells which nodes of a schema hold what `is_secret` says is one, also by a reference."""

    def __init__(self, root: Schema, is_secret: Callable[[Schema], bool]) -> None:
        self._is_secret = is_secret
        self._references: set[str] = set()
        definitions = root.get("definitions", ()) if root.get("type") == "definitions" else ()
        while found := {one["ref"] for one in definitions if self.holds(one)} - self._references:
            self._references |= found

    def holds(self, node: Any) -> bool:
        if not isinstance(node, dict):
            return isinstance(node, list | tuple) and any(self.holds(item) for item in node)
        if node.get("type") == "definition-ref":
            return node["schema_ref"] in self._references
        return self._is_secret(node) or any(self.holds(part) for part in parts(node))


def parts(node: Schema) -> Iterator[Any]:
    """Give what a node is made of. One without a type has fields by their names, and any name may be one of those."""
    is_schema = isinstance(node.get("type"), str)
    return (part for key, part in node.items() if not (is_schema and key in OPAQUE))


def leave_writing_to_us(node: Any, holders: Holders) -> None:
    """Take serializers of the user's from all that holds a secret: they might write it, and in clear.

    Fields that are left out when a model is dumped are stored, too. Raises ValueError where a secret cannot be stored.
    """
    if isinstance(node, list | tuple):
        for item in node:
            leave_writing_to_us(item, holders)
    elif isinstance(node, dict) and holders.holds(node):
        if isinstance(node.get("type"), str):
            _settle(node, node["type"], holders)
        for part in list(parts(node)):
            leave_writing_to_us(part, holders)


def _settle(node: Schema, kind: str, holders: Holders) -> None:
    if kind == "json":
        raise ValueError("a secret inside Json[…] cannot be stored; use the secret type itself")
    if kind in _WITH_KEYS and holders.holds(node.get("keys_schema")):
        raise ValueError("a secret cannot be the key of a dict")
    if "serialization" in node and not _is_trusted(node["serialization"].get("function")):
        del node["serialization"]
    node.pop("serialization_exclude", None)
    node.pop("serialization_exclude_if", None)


def _is_trusted(writer: Any) -> bool:
    """Tell whether it is us who write, or pydantic a sequence; by SerializeAsAny the secret's own class would."""
    return is_ours(writer) or str(getattr(writer, "__module__", "")).startswith("pydantic._internal.")


def is_ours(function: object) -> bool:
    return getattr(function, "__module__", None) == "engine.serialization.secret_types"
