"""How long finished instances are kept, by their final status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, cast

from engine.values.durations import parse_duration
from engine.values.errors import InvalidValueError


@dataclass(frozen=True, slots=True)
class Retention:
    """How long an instance is kept after its end; None means forever."""

    complete: timedelta | None = timedelta(days=30)
    errored: timedelta | None = timedelta(days=90)
    terminated: timedelta | None = timedelta(days=30)

    def with_(self, given: object) -> Retention:
        """Return the rules with the given ones replaced; None keeps everything forever.

        Raises ValueError unless they are durations by final status.
        """
        if given is None:
            return Retention(None, None, None)
        known = {field.name for field in fields(self)}
        if not isinstance(given, Mapping) or not known.issuperset(given):
            raise ValueError(
                f"It must be None, or a dict with durations by final status ({', '.join(sorted(known))}), "
                f'such as {{"complete": "30d", "errored": None}}. It is {repr(given)[:100]}.'
            )
        return replace(self, **{status: _duration(status, value) for status, value in given.items()})

    def seconds(self) -> dict[str, float | None]:
        """Return the rules as they are stored with an instance that has its own."""
        durations = {
            field.name: cast("timedelta | None", getattr(self, field.name)) for field in fields(self)
        }
        return {status: None if one is None else one.total_seconds() for status, one in durations.items()}


DEFAULT_RETENTION = Retention()


def own_retention(rules: Retention, given: Mapping[str, Any] | None) -> dict[str, float | None] | None:
    """Return what to store with an instance: None if its workflow's rules apply.

    Raises InvalidValueError.
    """
    if given is None:
        return None
    try:
        return rules.with_(given).seconds()
    except ValueError as problem:
        raise InvalidValueError("$", "invalid_retention", str(problem), what="retention") from None


def _duration(status: str, value: object) -> timedelta | None:
    return None if value is None else parse_duration(cast(Any, value), what=f"retention of {status}")
