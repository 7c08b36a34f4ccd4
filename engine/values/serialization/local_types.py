"""Types that are declared within a function: whatever is remembered about them goes with them.

A handler that declares a class makes a new one on each replay, and what such a class refers to, through its methods and
the closures of these, may be anything that the handler had in hand. A cache would keep all of it in the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, get_args

T = TypeVar("T")
LOCAL = "<locals>"


def remembered(about: str, annotation: Any, make: Callable[[Any], T], otherwise: Callable[[Any], T]) -> T:
    """Return what `make` makes of the annotation, once for each as long as its types are there.

    `otherwise` is for those without local types: a cache of `make`, say. Raises TypeError where an annotation cannot be
    hashed.
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
        except (AttributeError, TypeError):  # of a metaclass that forbids it
            return make(annotation)
    if annotation not in kept:
        kept[annotation] = make(annotation)
    found: T = kept[annotation]
    return found


def is_local(annotation: Any) -> bool:
    """Return whether any part of it was declared within a function."""
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
        if hasattr(part, "func"):  # a validator of pydantic's, or a partial
            waiting.append(part.func)
        if isinstance(part, list | tuple):
            waiting += part
