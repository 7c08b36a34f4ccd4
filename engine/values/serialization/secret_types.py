"""Store the values of pydantic's secret types encrypted, wherever they are in a declared type.

pydantic writes stars for them, so a secret would be lost. The schema used for storage wraps each secret: it is
written as an envelope, and read from one if the document comes from the database. Input from outside is read as
pydantic reads it, and a mask is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol, TypeVar

from pydantic import Secret, SecretBytes, SecretStr, ValidationInfo
from pydantic_core import PydanticCustomError, SchemaSerializer, SchemaValidator

from engine.values.serialization import envelope
from engine.values.serialization.rules import MAX_BYTES
from engine.values.serialization.secret_context import Source, issued, source
from engine.values.serialization.secret_holders import Holders, Schema, is_ours, replace_user_functions
from engine.values.serialization.writing import encode

SECRETS = (SecretStr, SecretBytes, Secret)
FAR_OVER = 8 * MAX_BYTES  # the stored document is limited as a whole
T = TypeVar("T", SchemaSerializer, SchemaValidator)


class Build(Protocol):
    def __call__(self, cls: type[T], schema: Schema, *, hides_input: bool) -> T: ...


class SecretNodes:
    """Wraps the secrets in the schema of one type."""

    def __init__(self, build: Build) -> None:
        self._build = build
        self._definitions: list[Schema] = []
        self._found: list[_SecretNode] = []

    @property
    def has_found(self) -> bool:
        return bool(self._found)

    def wrapped(self, node: Schema, adapt: Callable[[Any], Any]) -> Schema | None:
        """Return the replacement of a secret; None for any other node. Raises ValueError for an unsupported form."""
        found = inner_of(node)
        if found is None:
            _refuse_unknown(node)
            return None
        cls, inner = found
        made = _SecretNode(self, cls, node, adapt(inner))
        self._found.append(made)
        return {
            "type": "function-wrap",
            "function": {"type": "with-info", "function": made.read},
            "schema": made.node,
            "serialization": {"type": "function-plain", "function": made.write},
        }

    def finish(self, root: Schema) -> Schema:
        """Return the adapted schema, in which only we write what contains a secret. Raises ValueError."""
        if self._found:
            self._definitions = root["definitions"] if root["type"] == "definitions" else []
            holders = Holders(root, _is_wrapped)
            replace_user_functions([root, *(one.inner for one in self._found)], holders)
        return root

    def build(self, cls: type[T], schema: Schema) -> T:
        """Build a validator or serializer for a part of the schema."""
        if self._definitions:
            schema = {"type": "definitions", "schema": schema, "definitions": self._definitions}
        return self._build(cls, schema, hides_input=True)


def _is_wrapped(node: Schema) -> bool:
    return node.get("type") == "function-wrap" and "schema" in node and is_ours(_function(node))


def _function(node: Schema) -> object:
    # The function of a validator is in a dict, that of a serializer is not.
    function = node["function"]
    return function["function"] if isinstance(function, dict) else function


class _SecretNode:
    """How one secret is read and written. `inner` is the schema of its value."""

    def __init__(self, nodes: SecretNodes, cls: Any, node: Schema, inner: Schema) -> None:
        self.inner = inner
        self.node = node if cls is not Secret else _of(node, inner)
        self._nodes = nodes
        self._cls = cls

    def read(self, value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        origin = source()
        if origin is Source.OUTSIDE:
            return self._given(value, handler, info)
        if envelope.is_envelope(value):
            return self._secret.validate_json(envelope.open_envelope(value))
        if origin is Source.JUST_WRITTEN:
            raise PydanticCustomError("secret_in_clear", "The secret was not encrypted.")
        return self._read(value, handler, info)  # stored before its type became a secret

    def _given(self, value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        if not envelope.is_mask(value):
            value = self._read(value, handler, info)
        if envelope.is_mask(value.get_secret_value() if isinstance(value, SECRETS) else value):
            raise PydanticCustomError("secret_mask", envelope.MASK_REFUSED)
        return value

    def _read(self, value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        # By the rules for JSON, which `handler` no longer applies, since the value is now a Python object.
        if info.mode == "python" or isinstance(value, SECRETS):
            return handler(value)
        return self._secret.validate_json(json.dumps(value))

    def write(self, value: Any) -> dict[str, str]:
        held = self._held(value)
        if envelope.is_mask(held):  # in an object made by the program, which is not validated again
            raise ValueError(envelope.MASK_REFUSED)
        plain = self._value.to_python(held, mode="json", by_alias=False, round_trip=True, warnings=False)
        enclosed = envelope.enclose(encode(plain, what="secret", limit=FAR_OVER, envelopes=issued()))
        issued().add(enclosed[envelope.KEY])
        return enclosed

    def _held(self, value: Any) -> Any:
        if isinstance(value, self._cls):
            return value.get_secret_value()
        # Another member of a union, or a value put into an object without validation.
        if isinstance(value, SECRETS) or not self._is_held.isinstance_python(value, strict=True):
            raise ValueError("The value is not of the type that the secret declares.")
        return value

    # Built on first use: a type may contain itself, through definitions.

    @cached_property
    def _secret(self) -> SchemaValidator:
        return self._nodes.build(SchemaValidator, self.node)

    @cached_property
    def _is_held(self) -> SchemaValidator:
        return self._nodes.build(SchemaValidator, self.inner)

    @cached_property
    def _value(self) -> SchemaSerializer:
        return self._nodes.build(SchemaSerializer, self.inner)


def _of(node: Schema, inner: Schema) -> Schema:
    """Return the schema of a Secret[…] with this value."""
    within = {part: {**node[part], "schema": inner} for part in ("json_schema", "python_schema")}
    return {**node, **within}


def inner_of(node: Schema) -> tuple[Any, Schema] | None:
    """Return the class of a secret and the schema of its value; None if the node is not a secret."""
    if node.get("type") == "lax-or-strict":  # a SecretStr or SecretBytes
        return inner_of(node["lax_schema"])
    if node.get("type") != "json-or-python" or node["json_schema"]["type"] != "function-after":
        return None
    made = node["json_schema"]
    function = made["function"]["function"]
    if isinstance(function, type) and issubclass(function, SECRETS):
        return function, made["schema"]
    name = getattr(function, "__qualname__", "")
    if getattr(function, "__module__", "") == Secret.__module__ and name.startswith("Secret.__get_"):
        return Secret, made["schema"]
    return None


def _refuse_unknown(node: Schema) -> None:
    """Raise ValueError for a secret in an unknown form: pydantic would write stars for it."""
    cls = node.get("cls")
    writer = node.get("serialization", {}).get("function")
    if (node["type"] == "is-instance" and isinstance(cls, type) and issubclass(cls, SECRETS)) or (
        getattr(writer, "__module__", "") == Secret.__module__ and "secret" in getattr(writer, "__name__", "")
    ):
        raise ValueError("a secret type is used in a way that cannot be stored; use it without InstanceOf")
