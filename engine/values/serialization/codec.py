"""Store values of an annotated type: pydantic writes and reads them, under the same rules as plain JSON."""

import functools
from collections.abc import Container
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaValue

from engine.values.errors import InvalidParamsError, InvalidValueError, ParamError, SecretKeyError
from engine.values.serialization import envelope, secret_context
from engine.values.serialization.local_types import remembered
from engine.values.serialization.losses import losses
from engine.values.serialization.reading import InvalidJSON, decode_strict, read_json
from engine.values.serialization.rules import MAX_BYTES, show_path
from engine.values.serialization.schema import Pair, adapter_for, pair_for
from engine.values.serialization.secret_context import Source
from engine.values.serialization.secret_schema import json_schema
from engine.values.serialization.writing import encode

MOST_SAID = 5  # of the places with dropped keys: a list may repeat one a thousand times


class Stored(NamedTuple):
    """A value as it is stored, and as every replay reads it; `dropped` names what is not stored."""

    text: str
    value: object
    dropped: str = ""


class Codec:
    """Writes, reads and validates values of one annotation. Made by `Codec.of`."""

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation
        self.problem = ""  # why the annotation cannot be used, so that plain JSON is stored instead
        self._adapter: TypeAdapter[Any] | None = None
        self._pair: Pair | None = None
        if annotation is Any or annotation is object:
            return
        try:
            self._adapter = adapter_for(annotation)
            self._pair = pair_for(self._adapter)
        except Exception as problem:  # noqa: BLE001 - pydantic runs hooks of the annotated classes
            self._adapter = None
            reason = str(problem).split("\n", 1)[0][:500]
            self.problem = f"(The annotation {_name(annotation)} cannot be used: {reason})"

    @property
    def keeps_secrets(self) -> bool:
        """Return whether the type has a place for a secret."""
        return self._pair is not None and self._pair.keeps_secrets

    @staticmethod
    def of(annotation: Any) -> "Codec":
        """Return the codec of an annotation. For `Any` and types that pydantic cannot handle, it stores plain JSON."""
        if annotation is Any:
            return _cached(Any)
        try:
            return remembered("__reprise_codecs__", annotation, Codec, otherwise=_cached)
        except TypeError:  # not hashable, for example Annotated with a list
            return Codec(annotation)

    def store(self, value: object, what: str = "value", *, limit: int = MAX_BYTES) -> Stored:
        """Write a value and read it back. Return what was read, so that live and replayed values are equal.

        Raises InvalidValueError or LimitError, which name `what`, also if the value or one of its own fields could not
        be read back.
        """
        text = self._write(value, what, limit)
        back = self._read(text, what, Source.JUST_WRITTEN)
        return Stored(text, back, "" if self._pair is None else _dropped(value, back, what))

    def encode(self, value: object, what: str = "value", *, limit: int = MAX_BYTES) -> str:
        """Validate a value and write it, with the guarantees of `store`."""
        return self.store(value, what, limit=limit).text

    def decode(self, text: str, what: str = "stored value") -> object:
        """Read what `encode` wrote. Raises InvalidValueError if the annotation no longer accepts it."""
        return self._read(text, what, Source.STORE)

    def validate(self, value: object, what: str = "params") -> object:
        """Return a value from Python code as the annotated type; InvalidParamsError lists wrong fields."""
        if self._pair is None:
            return self._plain(value, what)
        try:
            return self._pair.validator.validate_python(value, by_alias=True, by_name=True)
        except ValidationError as problem:
            raise InvalidParamsError(param_errors(problem), what=what) from problem

    def validate_json(self, data: bytes | str, what: str = "params", *, limit: int = MAX_BYTES) -> object:
        """Return the value of a text from outside; InvalidJSON or InvalidParamsError says what is wrong."""
        value = read_json(data, limit=limit, what=what)
        if self._pair is None:
            return value
        try:
            return self._pair.validator.validate_json(data, by_alias=True, by_name=True)
        except ValidationError as problem:
            raise InvalidParamsError(param_errors(problem), what=what) from problem

    def schema(self) -> JsonSchemaValue | None:
        """Return the JSON Schema of the type, or None if any JSON value is accepted."""
        if self._adapter is None or self._pair is None:
            return None
        return json_schema(self._adapter) if self._pair.keeps_secrets else self._adapter.json_schema()

    def _read(self, text: str, what: str, source: Source) -> object:
        if self._pair is None:
            value = decode_strict(text, what=what)
            return secret_context.opened(value) if envelope.KEY in text else value
        try:
            if not self._pair.keeps_secrets and envelope.KEY not in text:  # the usual case
                return self._pair.validator.validate_json(text, by_alias=True, by_name=True)
            with secret_context.reading(source):
                return self._pair.validator.validate_json(text, by_alias=True, by_name=True)
        except ValidationError as problem:
            raise _invalid(problem, what, self.annotation) from problem
        except SecretKeyError:
            raise
        except Exception as problem:  # validators of the annotated classes
            message = f"It cannot be read as {_name(self.annotation)}: {str(problem)[:500]}"
            raise InvalidValueError("$", "not_readable", message, what=what) from problem

    def _write(self, value: object, what: str, limit: int) -> str:
        if self._pair is None:
            return encode(value, what=what, limit=limit, note=self.problem)
        try:
            valid = self._pair.validator.validate_python(value, by_alias=True, by_name=True)
            plain, issued = _written(self._pair, valid)
        except ValidationError as problem:
            raise _invalid(problem, what, self.annotation) from problem
        except Exception as problem:  # serializers and validators of the annotated classes
            message = f"It cannot be written as {_name(self.annotation)}: {str(problem)[:500]}"
            raise InvalidValueError("$", "not_serializable", message, what=what) from problem
        return encode(plain, what=what, limit=limit, envelopes=issued)

    def _plain(self, value: object, what: str) -> object:
        try:
            return decode_strict(encode(value, what=what, note=self.problem))
        except InvalidJSON:  # written by the engine: a bug, not the caller's mistake
            raise
        except InvalidValueError as problem:
            error = ParamError(path=as_loc(problem.path), message=problem.message, code=problem.code)
            raise InvalidParamsError([error], what=what) from problem


def param_errors(problem: ValidationError) -> list[ParamError]:
    """List every wrong field of a pydantic error, with paths such as `items/0/qty`."""
    return [
        ParamError(path="/".join(map(str, error["loc"])), message=error["msg"], code=error["type"])
        for error in problem.errors(include_url=False, include_context=False, include_input=False)
    ]


def _written(pair: Pair, valid: object) -> tuple[Any, Container[str]]:
    """Return the JSON of a value, and the tokens of the secrets that were encrypted in it."""
    how: dict[str, Any] = {"mode": "json", "by_alias": False, "round_trip": True, "warnings": False}
    if not pair.keeps_secrets:
        return pair.serializer.to_python(valid, **how), ()
    with secret_context.writing() as issued:
        return pair.serializer.to_python(valid, **how), issued


def _dropped(value: object, back: object, what: str) -> str:
    """Return which undeclared keys were dropped. Raises InvalidValueError if an object would lose its own fields."""
    said: list[str] = []
    for loss in losses(value, back):
        if loss.is_refused:
            raise InvalidValueError(show_path(loss.path), "fields_lost", loss.message, what=what)
        if len(said) < MOST_SAID:
            said.append(f"at {show_path(loss.path)}, {loss.message}")
    return "; ".join(said)


@functools.lru_cache(maxsize=1024)
def _cached(annotation: Any) -> Codec:
    return Codec(annotation)


def _invalid(problem: ValidationError, what: str, annotation: Any) -> InvalidValueError:
    first = problem.errors(include_url=False, include_context=False, include_input=False)[0]
    others = problem.error_count() - 1
    message = f"{first['msg'].rstrip('.')}." + (
        f" ({others:,} more of its parts do not match.)" if others else ""
    )
    path = [part for part in first["loc"] if part != "[key]"]  # pydantic's marker for a bad key
    is_ours = first["type"] == "not_json"  # a part that no type accepts
    mismatch = {} if is_ours else {"problem": f"does not match its type {_name(annotation)}"}
    return InvalidValueError(show_path(path), first["type"], message, what=what, **mismatch)


def as_loc(path: str) -> str:
    """Turn `$.items[0]` into `items/0`."""
    return path.removeprefix("$").replace("]", "").replace("[", "/").replace(".", "/").strip("/")


def _name(annotation: Any) -> str:
    name = annotation.__qualname__ if isinstance(annotation, type) else repr(annotation)
    return name[:200]
