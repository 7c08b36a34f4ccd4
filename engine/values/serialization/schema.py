"""Adapt pydantic's schemas to what is stored: any bytes, and only JSON for `Any`."""

from typing import Any, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic_core import CoreConfig, CoreSchema, PydanticCustomError, SchemaSerializer, SchemaValidator

from engine.values.errors import InvalidValueError, LimitError
from engine.values.serialization import envelope
from engine.values.serialization.secret_context import Source, opened, source
from engine.values.serialization.secret_holders import OPAQUE
from engine.values.serialization.secret_types import SecretNodes, T
from engine.values.serialization.typed_dicts import IS_NEEDED, modernize
from engine.values.serialization.writing import encode

# pydantic writes bytes as UTF-8 by default. Most bytes are not UTF-8, and it may contain NUL.
_CONFIG = CoreConfig(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")
_WITH_CONFIG = frozenset({"model", "dataclass", "typed-dict"})
# Where bare `list` or `dict` omit their item types.
_OPEN = {
    "list": ("items_schema",),
    "set": ("items_schema",),
    "frozenset": ("items_schema",),
    "dict": ("values_schema",),
}


class Pair(NamedTuple):
    validator: SchemaValidator
    serializer: SchemaSerializer
    keeps_secrets: bool


def adapter_for(annotation: Any, config: ConfigDict | None = None) -> TypeAdapter[Any]:
    return TypeAdapter(modernize(annotation) if IS_NEEDED else annotation, config=config)


def pair_for(adapter: TypeAdapter[Any]) -> Pair:
    """Build validator and serializer from the type's schema, with our configuration in every part."""
    secrets = SecretNodes(_build)
    schema = secrets.finish(_adapt(adapter.core_schema, secrets))
    hides_input = secrets.has_found
    return Pair(
        _build(SchemaValidator, schema, hides_input=hides_input),
        _build(SchemaSerializer, schema, hides_input=hides_input),
        secrets.has_found,
    )


def _build(cls: type[T], schema: dict[str, Any], *, hides_input: bool) -> T:
    # If the type has secrets, pydantic's errors must not show the value.
    config = CoreConfig(**_CONFIG, hide_input_in_errors=hides_input)
    try:
        # A model's prebuilt validator would use the model's configuration instead of ours.
        options: dict[str, Any] = {"_use_prebuilt": False}
        return cls(cast(CoreSchema, schema), config, **options)
    except TypeError:  # a pydantic without that option
        return cls(cast(CoreSchema, schema), config)


def _adapt(node: Any, secrets: SecretNodes) -> Any:
    if isinstance(node, list):
        return [_adapt(item, secrets) for item in node]
    if isinstance(node, tuple):
        return tuple(_adapt(item, secrets) for item in node)
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    if not isinstance(kind, str):  # fields by their names, one of which may be "type"
        return {name: _adapt(field, secrets) for name, field in node.items()}
    wrapped = secrets.wrapped(node, lambda inner: _adapt(inner, secrets))
    return _adapted(node, kind, secrets) if wrapped is None else wrapped


def _adapted(node: dict[str, Any], kind: str, secrets: SecretNodes) -> dict[str, Any]:
    if kind == "generator":
        raise ValueError("the items of a generator can be read only once; return a list")
    if kind == "model" and node["cls"] is BaseModel:
        raise ValueError("BaseModel itself has no fields; name the model")
    if kind == "any" and "serialization" not in node:
        return {**node, **_ONLY_JSON}
    adapted = {key: value if key in OPAQUE else _adapt(value, secrets) for key, value in node.items()}
    if isinstance(how := node.get("serialization"), dict):  # not a type to adapt, but it may refer to one
        adapted["serialization"] = {key: _adapt(value, secrets) for key, value in how.items()}
    if kind in _WITH_CONFIG:
        adapted["config"] = {**_CONFIG, **(node.get("config") or {})}
    if kind == "dict" and node.get("keys_schema", {"type": "any"})["type"] == "any":
        adapted["keys_schema"] = {"type": "str", "strict": True}
    for part in _OPEN.get(kind, ()):
        adapted.setdefault(part, _adapt({"type": "any"}, secrets))
    return adapted


def _only_json(value: object) -> object:
    """Refuse a value of type `Any` that would be read back as something else."""
    is_stored = source() is not Source.OUTSIDE
    try:
        encode(value, envelopes=envelope.STORED if is_stored else ())
    except InvalidValueError as problem:
        raise PydanticCustomError("not_json", "{problem}", {"problem": problem.message}) from None
    except LimitError as problem:
        raise PydanticCustomError("too_large", "{problem}", {"problem": str(problem)}) from None
    return opened(value) if is_stored else value


def _write_json(value: object) -> object:
    """Do the same when an existing object is written, which is not validated again."""
    encode(value)
    return value


_ONLY_JSON = {
    "type": "function-plain",
    "function": {"type": "no-info", "function": _only_json},
    "serialization": {"type": "function-plain", "function": _write_json},
}
