"""What buttons do to the document of a form: add, move, remove, pick another alternative."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from studio.forms import schema
from studio.forms.controls import Control, within
from studio.forms.document import MISSING, Path, at, put
from studio.forms.shape import shape_of

Root = Mapping[str, Any]


class UnknownChangeError(ValueError):
    """There is no such change, or nothing at its path: the form is of another document."""


def change(
    root: Root, form: Control, document: Any, verb: str, name: str, given: str = ""
) -> tuple[Any, Path]:
    """Return the document after a press of a button, and the path that has the focus then.

    `name` is the pointer of the control, `given` the name of a new entry or the number of an alternative. Raises
    UnknownChangeError.
    """
    found = [one for one in within(form) if one.name == name]
    # An alternative has the path of its union: of the two, the buttons know which one they mean.
    control = next((one for one in found if one.kind in _KINDS.get(verb, ())), found[-1] if found else None)
    act = _ACTS.get(verb)
    if act is None or control is None:
        raise UnknownChangeError(verb)
    return act(root, document, control, given)


def _add(root: Root, document: Any, control: Control, given: str) -> tuple[Any, Path]:
    items = _own(at(document, control.path), list)
    path = (*control.path, len(items))
    return put(document, control.path, [*items, _blank(root, control.source.about["items"])]), path


def _enter(root: Root, document: Any, control: Control, given: str) -> tuple[Any, Path]:
    members = _own(at(document, control.path), dict)
    name = given or next(name for name in _new_names() if name not in members)
    if name in members:
        return document, (*control.path, name)
    made = {**members, name: _blank(root, control.source.about["additionalProperties"])}
    return put(document, control.path, made), (*control.path, name)


def _new_names() -> Any:
    number = 1
    while True:
        yield f"name-{number}"
        number += 1


def _remove(root: Root, document: Any, control: Control, given: str) -> tuple[Any, Path]:
    return put(document, control.path, MISSING), control.path[:-1]


def _up(root: Root, document: Any, control: Control, given: str) -> tuple[Any, Path]:
    return _moved(document, control, -1)


def _down(root: Root, document: Any, control: Control, given: str) -> tuple[Any, Path]:
    return _moved(document, control, 1)


def _moved(document: Any, control: Control, by: int) -> tuple[Any, Path]:
    parent, index = control.path[:-1], control.path[-1] if control.path else ""
    items = list(_own(at(document, parent), list))
    if not isinstance(index, int) or not (0 <= index < len(items) and 0 <= index + by < len(items)):
        raise UnknownChangeError("move")
    items[index], items[index + by] = items[index + by], items[index]
    return put(document, parent, items), (*parent, index + by)


def _include(root: Root, document: Any, control: Control, given: str) -> tuple[Any, Path]:
    """Put an optional part into the document."""
    shape = control.source
    node = shape.options[0] if shape.kind == "union" else shape.about
    return put(document, control.path, _blank(root, node)), control.path


def _leave_out(root: Root, document: Any, control: Control, given: str) -> tuple[Any, Path]:
    value = None if control.is_required and control.is_nullable else MISSING
    return put(document, control.path, value), control.path


def _pick(root: Root, document: Any, control: Control, given: str) -> tuple[Any, Path]:
    """Change to another alternative. Fields of the same name keep their values."""
    shape, number = control.source, int(given) if given.isdecimal() else -1
    if not 0 <= number < len(shape.options):
        raise UnknownChangeError("pick")
    before, made = at(document, control.path), _blank(root, shape.options[number])
    inner = shape_of(root, shape.options[number])
    if isinstance(made, dict) and isinstance(before, dict) and inner.kind == "group":
        fixed = {
            name for name, node in inner.about["properties"].items() if "const" in schema.resolve(root, node)
        }
        kept = {name: value for name, value in before.items() if name in made and name not in fixed}
        made = {**made, **kept}
    return put(document, control.path, made), control.path


def _blank(root: Root, node: Any) -> Any:
    """Return a value to start from: not null, which is what a part is that is left out."""
    about = {"$defs": root.get("$defs", {}), **shape_of(root, node).about}
    return schema.example(
        {word: rule for word, rule in about.items() if word != "default" or rule is not None}
    )


def _own(value: Any, kind: type) -> Any:
    if value is MISSING or value is None:
        return kind()
    if not isinstance(value, kind):
        raise UnknownChangeError("another type")
    return value


_EXPECTED = ("group", "list", "map", "union")
_KINDS = {
    "add": ("list",),
    "enter": ("map",),
    "pick": ("union",),
    "include": ("add",),
    "leave-out": _EXPECTED,
}
_ACTS: dict[str, Callable[[Root, Any, Control, str], tuple[Any, Path]]] = {
    "add": _add,
    "enter": _enter,
    "remove": _remove,
    "up": _up,
    "down": _down,
    "include": _include,
    "leave-out": _leave_out,
    "pick": _pick,
}
