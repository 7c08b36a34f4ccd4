"""Typed values that come from outside: the params of a workflow, the payload of an event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import (
    DeclarationError,
    InvalidParamsError,
    InvalidValueError,
    ParamError,
    RepriseError,
)
from engine.serialization import Codec, encode

if TYPE_CHECKING:
    from engine.registry import Workflow


def codec_of(annotation: Any, *, what: str, field: str) -> Codec:
    """Return the codec of a declared type. Raises DeclarationError for one that pydantic cannot validate."""
    codec = Codec.of(annotation)
    if codec.problem:
        rule = f"Its type must be one that pydantic validates. {codec.problem}"
        raise DeclarationError(what, field, rule)
    return codec


def validate(codec: Codec, value: object, *, what: str = "params") -> object:
    """Return the value as its declared type; InvalidParamsError lists each wrong field with its path.

    Plain JSON is read by pydantic's rules for JSON, so that a form, the API and a dict in Python mean the
    same: bytes are base64, a list makes a set or a tuple. Other values are read by its rules for Python.
    """
    try:
        text = encode(value, what=what)
    except InvalidValueError:
        text = None
    try:
        return codec.validate(value, what) if text is None else codec.validate_json(text, what)
    except RepriseError:
        raise
    except Exception as problem:  # a validator of the declared type: the user's code
        kind = type(problem).__qualname__
        error = ParamError(
            path="", message=f"Its validator raised {kind}: {problem}", code="validator_failed"
        )
        raise InvalidParamsError([error], what=what) from problem


def encode_valid(codec: Codec, value: object, *, what: str = "params") -> str:
    """Return the value, validated, as the JSON text that is stored: the type's own form, with its defaults.

    Raises InvalidParamsError, InvalidValueError or LimitError, also for what could not be read back.
    """
    return codec.store(validate(codec, value, what=what), what).text


def validate_params(workflow: Workflow[Any, Any], params: object) -> str:
    """Return the params as the JSON text to store.

    Raises InvalidParamsError, InvalidValueError or LimitError.
    """
    if workflow.takes_params:
        return encode_valid(workflow.params, params)
    if params is not None:
        message = f'Workflow "{workflow.name}" takes no params.'
        raise InvalidParamsError([{"path": "", "message": message, "code": "no_params"}])
    return "null"
