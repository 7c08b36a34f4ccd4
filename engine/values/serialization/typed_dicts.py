"""Let pydantic accept `typing.TypedDict` on Python 3.11, where it requires the class of typing_extensions."""

import functools
import sys
import types
import typing
from typing import Annotated, Any, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import typing_extensions

from engine.values.serialization.local_types import remembered

IS_NEEDED = sys.version_info < (3, 12)


def modernize(annotation: Any) -> Any:
    """Return the annotation with its TypedDicts rebuilt; pydantic handles those inside other classes."""
    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return remembered("__reprise_rebuilt__", annotation, _rebuilt, otherwise=_cached)
    args = get_args(annotation)
    changed = tuple(modernize(arg) for arg in args) if get_origin(annotation) is not typing.Literal else args
    if all(new is old for new, old in zip(changed, args, strict=True)):
        return annotation
    return _with_args(annotation, changed)


@functools.lru_cache(maxsize=256)
def _cached(original: Any) -> Any:
    return _rebuilt(original)


def _rebuilt(original: Any) -> Any:
    # One that contains itself ends in a RecursionError, and is then stored as plain JSON.
    fields = {
        name: _field(hint, is_required=name in original.__required_keys__)
        for name, hint in get_type_hints(original, include_extras=True).items()
    }
    rebuilt = typing_extensions.TypedDict(original.__name__, fields)  # type: ignore[misc]
    rebuilt.__doc__, rebuilt.__module__ = original.__doc__, original.__module__
    return rebuilt


def _field(hint: Any, *, is_required: bool) -> Any:
    origin = get_origin(hint)
    if origin is Required or origin is NotRequired:
        return origin[modernize(get_args(hint)[0])]
    return modernize(hint) if is_required else NotRequired[modernize(hint)]


def _with_args(annotation: Any, args: tuple[Any, ...]) -> Any:
    origin = get_origin(annotation)
    if origin is Union or origin is types.UnionType:
        return Union[args]  # noqa: UP007 - there is no other way to write it of a tuple
    if origin is Annotated:
        return Annotated[(args[0], *annotation.__metadata__)]
    return annotation.copy_with(args) if hasattr(annotation, "copy_with") else origin[args]
