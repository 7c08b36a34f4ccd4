"""Find the parts of a type's schema that contain secrets: user functions must not see an envelope or write a secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from engine.values.serialization.secret_context import in_clear

Schema: TypeAlias = dict[str, Any]
# User values and pydantic metadata that only look like schemas.
OPAQUE = frozenset({"default", "expected", "members", "metadata", "config", "cls", "ref", "schema_ref"})

_BEFORE = frozenset({"function-before", "function-wrap", "function-plain"})
_TRUSTED = ("pydantic._internal.", "pydantic.functional_validators", "pydantic.types")
_WITH_KEYS = frozenset({"dict", "ordered-dict", "defaultdict", "counter"})


class Holders:
    """Finds the nodes of a schema that contain a secret according to `is_secret`, directly or by reference."""

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
    """Yield the parts of a node. A node without a type has fields by name, and any name may be one of them."""
    is_schema = isinstance(node.get("type"), str)
    return (part for key, part in node.items() if not (is_schema and key in OPAQUE))


def replace_user_functions(node: Any, holders: Holders) -> None:
    """Separate user functions from stored values wherever there is a secret.

    Serializers are removed: they might write a secret in plain text. Validators that run before the secret's own get
    the decrypted value. Fields that a model excludes from dumps are stored too. Raises ValueError if a secret cannot be
    stored.
    """
    if isinstance(node, list | tuple):
        for item in node:
            replace_user_functions(item, holders)
    elif isinstance(node, dict) and holders.holds(node):
        if isinstance(node.get("type"), str):
            _replace_in(node, holders)
        for part in list(parts(node)):
            replace_user_functions(part, holders)


def _replace_in(node: Schema, holders: Holders) -> None:
    kind = node["type"]
    if kind == "json":
        raise ValueError("a secret inside Json[…] cannot be stored; use the secret type itself")
    if kind in _WITH_KEYS and holders.holds(node.get("keys_schema")):
        raise ValueError("a secret cannot be the key of a dict")
    if "serialization" in node:
        if not _is_trusted(node["serialization"].get("function")):
            del node["serialization"]
        else:  # its result is already written
            node["serialization"].pop("return_schema", None)
    if (
        kind in _BEFORE
        and isinstance(node["function"], dict)
        and not _is_trusted(node["function"]["function"])
    ):
        function = _with_clear_input(node["function"]["function"])
        node["function"] = {**node["function"], "function": function}
    node.pop("serialization_exclude", None)
    node.pop("serialization_exclude_if", None)


def _with_clear_input(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda value, *rest: function(in_clear(value), *rest)


def _is_trusted(function: Any) -> bool:
    """Return whether it is our function or pydantic's, except SerializeAsAny's, which lets the secret's class write."""
    return is_ours(function) or str(getattr(function, "__module__", "")).startswith(_TRUSTED)


def is_ours(function: object) -> bool:
    return getattr(function, "__module__", None) == "engine.values.serialization.secret_types"
