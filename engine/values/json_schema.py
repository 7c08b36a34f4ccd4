"""Check a value against a recorded JSON Schema when the type it came from is not available."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from ipaddress import IPv4Address, IPv6Address
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import TypeAdapter, ValidationError

from engine.values.errors import InvalidParamsError, ParamError
from engine.values.serialization import JSON, decode_strict, encode
from engine.values.serialization.secret_schema import holds_secrets

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError as Fault

MOST_FAULTS = 20
LONGEST_MESSAGE = 300
# What pydantic writes for its types; an answer that passes here must later be readable by them.
FORMATS = {
    "date": date,
    "date-time": datetime,
    "time": time,
    "duration": timedelta,
    "uuid": UUID,
    "ipv4": IPv4Address,
    "ipv6": IPv6Address,
}


def check(value: object, schema: Mapping[str, Any] | None, *, what: str = "answer") -> JSON:
    """Return the value as plain JSON. Raises InvalidParamsError with a path for each wrong field."""
    plain = decode_strict(encode(value, what=what))
    if schema is None:
        return plain
    try:
        hides_values = holds_secrets(schema)
        faults = [_error(fault, hides_values=hides_values) for fault in _faults(plain, schema)]
    except re.error:
        return plain  # a pydantic pattern that Python's `re` does not support: left to the type
    if faults:
        raise InvalidParamsError(faults, what=f"values of the {what}")
    return plain


def validator_of(schema: Mapping[str, Any]) -> Any:
    """Return the library's validator of a schema."""
    return _validator(json.dumps(schema))


def _faults(value: JSON, schema: Mapping[str, Any]) -> Iterator[Fault]:
    return islice(validator_of(schema).iter_errors(value), MOST_FAULTS)


@functools.lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    # Imported late: it takes a tenth of a second, and only people's answers need it.
    from jsonschema import Draft202012Validator, FormatChecker
    from referencing import Registry

    formats = FormatChecker(formats=())
    for name, annotation in FORMATS.items():
        formats.checks(name, raises=ValidationError)(functools.partial(_has_format, TypeAdapter(annotation)))
    # A registry of its own: without one, an external reference would be fetched over the network.
    return Draft202012Validator(json.loads(schema), format_checker=formats, registry=Registry())


def _has_format(adapter: TypeAdapter[Any], value: object) -> bool:
    if isinstance(value, str):
        adapter.validate_python(value)
    return True


def _error(fault: Fault, *, hides_values: bool) -> ParamError:
    """Return the field and the rule; if all alternatives fail, the fault of the closest one.

    The library's own messages contain the value, which may contain secrets.
    """
    from jsonschema.exceptions import best_match

    fault = best_match([fault]) or fault
    path = [str(part) for part in fault.absolute_path]
    message = fault.message
    if fault.validator == "required":
        missing = [name for name in fault.validator_value if message == f"{name!r} is a required property"]
        path, message = [*path, *missing], "This is required."
    elif fault.validator == "format":
        message = f"This is not a valid {fault.validator_value}."
    elif hides_values and fault.validator == "additionalProperties":
        path, message = [*path, *_unknown_fields(fault)[:1]], "This field is unknown."
    elif hides_values:
        message = _broken_rule(str(fault.validator), fault.validator_value)
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "…"
    return ParamError(path="/".join(path), message=message, code=str(fault.validator))


def _unknown_fields(fault: Fault) -> list[str]:
    known = fault.schema.get("properties", {})
    return [name for name in fault.instance if name not in known and repr(name) in fault.message]


def _broken_rule(word: str, value: object) -> str:
    if word == "type":
        return f"It must be of type {value}."
    if isinstance(value, str | int | float):
        return f"It breaks the rule {word}: {value}."
    return "It does not match the schema."
