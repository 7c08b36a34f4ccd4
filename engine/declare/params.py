"""Typed values that come from outside: the params of a workflow, the payload of an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from engine.values.errors import (
    DeclarationError,
    InvalidParamsError,
    InvalidValueError,
    ParamError,
    RepriseError,
)
from engine.values.serialization import JSON, Codec, encode
from engine.values.serialization.codec import as_loc
from engine.values.serialization.envelope import KEY, STORED


class TakesParams(Protocol):
    """What validation needs to know about the params of a workflow."""

    @property
    def name(self) -> str: ...
    @property
    def takes_params(self) -> bool: ...
    @property
    def params(self) -> Codec: ...


def codec_of(annotation: Any, *, what: str, field: str) -> Codec:
    """Return the codec of a declared type. Raises DeclarationError for one that pydantic cannot validate."""
    codec = Codec.of(annotation)
    if codec.problem:
        rule = f"Its type must be one that pydantic validates. {codec.problem}"
        raise DeclarationError(what, field, rule)
    return codec


def validate(codec: Codec, value: object, *, what: str = "params") -> object:
    """Return the value as its declared type. Raises InvalidParamsError with the path of each wrong field.

    Plain JSON is read by pydantic's rules for JSON, so that a form, the API and a dict in Python mean the same:
    bytes are base64, a list becomes a set or a tuple. Other values are read by its rules for Python.
    """
    try:
        text = encode(value, what=what)
    except InvalidValueError:
        text = None
    try:
        return codec.validate(value, what) if text is None else codec.validate_json(text, what)
    except RepriseError:
        raise
    except Exception as problem:  # a validator of the declared type: user code
        kind = type(problem).__qualname__
        error = ParamError(
            path="", message=f"Its validator raised {kind}: {problem}", code="validator_failed"
        )
        raise InvalidParamsError([error], what=what) from problem


def encode_valid(codec: Codec, value: object, *, what: str = "params") -> str:
    """Validate the value and return the JSON text to store: in the type's own form, with its defaults.

    Raises InvalidParamsError, InvalidValueError or LimitError, also if the value could not be read back.
    """
    return codec.store(validate(codec, value, what=what), what).text


@dataclass(frozen=True, slots=True)
class FromStore:
    """A document that was stored before, such as a schedule's params: its secrets are encrypted and stay encrypted."""

    value: JSON


def encode_stored(codec: Codec, document: FromStore, *, what: str = "params") -> str:
    """Return the JSON text of a document that was stored before. Raises InvalidParamsError if the type rejects it."""
    text = encode(document.value, what=what, envelopes=STORED)
    if KEY not in text:
        return encode_valid(codec, document.value, what=what)
    try:
        codec.decode(text, what)
    except InvalidValueError as problem:
        error = ParamError(path=as_loc(problem.path), message=problem.message, code=problem.code)
        raise InvalidParamsError([error], what=what) from problem
    return text


def validate_params(workflow: TakesParams, params: object) -> str:
    """Return the params as the JSON text to store.

    Raises InvalidParamsError, InvalidValueError or LimitError, and SecretKeyError for stored params.
    """
    if isinstance(params, FromStore):
        if workflow.takes_params:
            return encode_stored(workflow.params, params)
        params = params.value
    if workflow.takes_params:
        return encode_valid(workflow.params, params)
    if params is not None:
        message = f'Workflow "{workflow.name}" takes no params.'
        raise InvalidParamsError([{"path": "", "message": message, "code": "no_params"}])
    return "null"
