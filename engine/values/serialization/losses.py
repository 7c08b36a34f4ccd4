"""Find the fields that a value loses when it is written and read back.

pydantic writes and reads the fields that the annotated type declares. It silently drops the additional fields of a
subclass, and the keys of a dict that match no field.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import AliasChoices, AliasPath, BaseModel

Path = tuple[str | int, ...]
_PLAIN = frozenset({str, int, float, bool, type(None)})
MOST = 5  # names listed in a message


class Loss(NamedTuple):
    """A sentence about lost fields, and the path of the value that has them.

    `is_refused`: the value's own class declares the fields. Additional keys of a dict may be dropped.
    """

    path: Path
    message: str
    is_refused: bool


def losses(value: object, back: object) -> Iterator[Loss]:
    """Compare a value with what is read back."""
    if type(value) is not type(back) or not _is_equal(value, back):
        yield from _walk(value, back, ())


def _is_equal(value: object, back: object) -> bool:
    """Return whether the two are equal; objects of two classes are not. This is faster than walking them."""
    try:
        return bool(value == back)
    except Exception:  # noqa: BLE001 - the comparison is the user's
        return False


def _walk(value: object, back: object, path: Path) -> Iterator[Loss]:
    if type(value) in _PLAIN or type(back) in _PLAIN:
        return
    if isinstance(value, list | tuple) and isinstance(back, list | tuple) and not _is_named(back):
        for index, (one, other) in enumerate(zip(value, back, strict=False)):
            if type(one) not in _PLAIN:
                yield from _walk(one, other, (*path, index))
    elif isinstance(value, set | frozenset) and isinstance(back, set | frozenset):
        yield from _walk_set(value, back, path)
    else:
        yield from _walk_fields(value, back, path)


def _walk_fields(value: object, back: object, path: Path) -> Iterator[Loss]:
    had, has = _fields(value), _fields(back)
    if had is None or has is None:
        return
    if type(value) is not type(back) or isinstance(value, dict):
        lost = [name for name in had if name not in has and not _is_taken(name, back)]
        if lost:
            yield _undeclared(value, back, path, lost)
    elif changed := _not_taken_back(value, back):
        yield _changed(value, path, changed)
    for name, one in had.items():
        if type(one) not in _PLAIN and name in has:
            yield from _walk(one, has[name], (*path, name))


def _walk_set(value: Iterable[object], back: Iterable[object], path: Path) -> Iterator[Loss]:
    """Compare each item with the first one read back: which of them it became does not matter."""
    first = next(iter(back), None)
    for one in value:
        yield from (loss for loss in _walk(one, first, path) if loss.is_refused)


def _undeclared(value: object, back: object, path: Path, lost: list[str]) -> Loss:
    given, declared = type(value).__qualname__, type(back).__qualname__
    if isinstance(value, Mapping) or not isinstance(value, type(back)):
        by = "the annotated type" if isinstance(back, dict) else declared
        return Loss(path, f"{by} does not declare {_listed(lost)}", is_refused=False)
    message = (
        f"A {given} has {_listed(lost)}, which the annotated {declared} does not declare, so it would be lost. "
        f"Annotate with {given}, or with a union of both, or return a {declared}."
    )
    return Loss(path, message, is_refused=True)


def _not_taken_back(value: Any, back: Any) -> list[str]:
    """Return the fields that a dataclass does not take in its `__init__` and whose value has changed."""
    if not dataclasses.is_dataclass(value):
        return []
    names = [field.name for field in dataclasses.fields(value) if not field.init]
    gone = object()
    return [name for name in names if not _is_equal(getattr(value, name, gone), getattr(back, name, gone))]


def _changed(value: object, path: Path, changed: list[str]) -> Loss:
    message = (
        f"The __init__ of {type(value).__qualname__} does not take {_listed(changed)}, so the value would come back "
        "without what it has there. Declare it without init=False."
    )
    return Loss(path, message, is_refused=True)


def _listed(names: list[str]) -> str:
    shown = ", ".join(f'"{name[:64]}"' for name in names[:MOST])
    more = f" and {len(names) - MOST:,} more" if len(names) > MOST else ""
    return f"the field{'s' if len(names) > 1 else ''} {shown}{more}"


def _fields(value: Any) -> dict[str, object] | None:
    """Return the values of the fields, or None for a value without fields."""
    if isinstance(value, dict):
        return (
            value if all(type(key) is str for key in value) else {str(key): one for key, one in value.items()}
        )
    if isinstance(value, BaseModel):
        declared = type(value).__pydantic_fields__
        held = {
            name: one for name, one in vars(value).items() if name in declared and not declared[name].exclude
        }
        return held | value.model_extra if value.model_extra else held
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    return value._asdict() if _is_named(value) else None


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_asdict")


def _is_taken(name: str, back: object) -> bool:
    """Return whether a key of a dict is an alias of a field."""
    declared = getattr(type(back), "__pydantic_fields__", None) or {}
    return any(name in _aliases(field.alias, field.validation_alias) for field in declared.values())


def _aliases(*given: str | AliasPath | AliasChoices | None) -> Iterator[str]:
    for alias in given:
        if isinstance(alias, str):
            yield alias
        elif isinstance(alias, AliasPath):
            yield from (part for part in alias.path[:1] if isinstance(part, str))
        elif isinstance(alias, AliasChoices):
            yield from _aliases(*alias.choices)
