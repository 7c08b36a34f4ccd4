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
    has_button, act = _ACTS.get(verb, (None, None))
    # An alternative has the path of its union: only one of the two has this button.
    control = next((one for one in within(form) if one.name == name and has_button and has_button(one)), None)
    if act is None or control is None:
        raise UnknownChangeError(verb)
    return act(root, document, control, given)


def after(path: Path, verb: str, item: Path) -> Path | None:
    """Return the path of what was at a path before an item was moved or removed. None: it was removed."""
    depth = len(item) - 1
    if verb not in ("up", "down", "remove") or len(path) <= depth or path[:depth] != item[:depth]:
        return path
    here, moved = path[depth], item[depth]
    if verb == "remove" and here == moved:
        return None
    if isinstance(here, int) and isinstance(moved, int):
        other = moved + {"up": -1, "down": 1, "remove": 0}[verb]
        here = here - (here > moved) if verb == "remove" else {moved: other, other: moved}.get(here, here)
    return (*path[:depth], here, *path[depth + 1 :])


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
    shape, number = control.source, int(given)
    before, made = at(document, control.path), _blank(root, shape.options[number])
    inner = shape_of(root, shape.options[number])
    if isinstance(made, dict) and isinstance(before, dict) and inner.kind == "group":
        free = {
            name
            for name, node in inner.about["properties"].items()
            if "const" not in schema.resolve(root, node)
        }
        kept = {name: value for name, value in before.items() if name in free}
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


_ACTS: dict[str, tuple[Callable[[Control], bool], Callable[[Root, Any, Control, str], tuple[Any, Path]]]] = {
    "add": (lambda control: control.kind == "list" and not control.is_full, _add),
    "enter": (lambda control: control.kind == "map", _enter),
    "remove": (lambda control: control.item is not None or control.key is not None, _remove),
    "up": (lambda control: control.item is not None, _up),
    "down": (lambda control: control.item is not None, _down),
    "include": (lambda control: control.kind == "add", _include),
    "leave-out": (lambda control: control.is_extra, _leave_out),
    "pick": (lambda control: control.kind == "union", _pick),
}
VERBS = frozenset(_ACTS)
