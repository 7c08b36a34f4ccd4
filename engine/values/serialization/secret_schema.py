"""The JSON Schema of a type with secrets: they are marked as such and as `writeOnly`, and defaults do not show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from engine.values.serialization.secret_holders import Holders
from engine.values.serialization.secret_types import inner_of

MARK = "x-secret"  # `writeOnly` alone is not enough: any declaration may set it on any field


def json_schema(adapter: TypeAdapter[Any]) -> JsonSchemaValue:
    """Return the JSON Schema of a type."""
    return adapter.json_schema(schema_generator=_Marking)


def holds_secrets(schema: Any) -> bool:
    """Return whether a document of this JSON Schema may contain a secret."""
    if isinstance(schema, Mapping):
        return schema.get(MARK) is True or any(holds_secrets(part) for part in schema.values())
    return isinstance(schema, list) and any(holds_secrets(part) for part in schema)


class _Marking(GenerateJsonSchema):
    def generate(self, schema: Any, mode: Any = "validation") -> JsonSchemaValue:
        self._holders = Holders(schema, lambda node: inner_of(node) is not None)
        return super().generate(schema, mode)

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        made = super().generate_inner(schema)
        if inner_of(schema) is None:
            return made
        password = {"format": "password"} if made.get("type") == "string" and "format" not in made else {}
        return {**made, **password, "writeOnly": True, MARK: True}

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        if schema.get("default") and self._holders.holds(schema["schema"]):
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)
