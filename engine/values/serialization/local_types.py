"""Types declared inside a function: cached data about them is freed with them.

A handler that declares a class makes a new one on each replay. Through its methods and their closures, such a class may
refer to anything that the handler used. A cache would keep all of it in the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, get_args

T = TypeVar("T")
LOCAL = "<locals>"


def remembered(about: str, annotation: Any, make: Callable[[Any], T], otherwise: Callable[[Any], T]) -> T:
    """Return `make(annotation)`, called once as long as the annotation's types exist.

    `otherwise` is used for annotations without local types, for example a cache of `make`. Raises TypeError if the
    annotation is not hashable.
    """
    holder = None
    for holder in _local_parts(annotation):  # noqa: B007 - any of them will do
        break
    if holder is None:
        return otherwise(annotation)
    if not isinstance(holder, type):
        return make(annotation)
    kept = vars(holder).get(about)
    if kept is None:
        kept = {}
        try:
            setattr(holder, about, kept)
        except (AttributeError, TypeError):  # the metaclass forbids it
            return make(annotation)
    if annotation not in kept:
        kept[annotation] = make(annotation)
    found: T = kept[annotation]
    return found


def is_local(annotation: Any) -> bool:
    """Return whether any part of the annotation was declared inside a function."""
    return next(_local_parts(annotation), None) is not None


def _local_parts(annotation: Any) -> Iterator[object]:
    waiting = [annotation]
    while waiting:
        part = waiting.pop()
        if LOCAL in str(getattr(part, "__qualname__", "")):
            yield part
        generic = getattr(part, "__pydantic_generic_metadata__", None)
        waiting += generic["args"] if isinstance(generic, dict) else get_args(part)
        waiting += getattr(part, "__metadata__", ())  # of Annotated
        if hasattr(part, "func"):  # a pydantic validator, or a partial
            waiting.append(part.func)
        if isinstance(part, list | tuple):
            waiting += part
