"""Params in the address of the start form: `p.items.0.sku=a-1` sets a value, `without=note` leaves a field out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from engine.values.secret_places import secret_places
from studio.forms.document import MISSING, Path, at, dump, parse, put
from studio.forms.json_text import read_text
from studio.forms.shape import Shape, shape_of

MOST_VALUES = 100
MOST_PARTS = 64  # of a name; a document is not deeper either
LONGEST_NUMBER = 6  # digits of a place in a list
Root = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Filled:
    """A document with the values of an address, and the names that have no place in it or are secrets."""

    document: Any
    refused: list[str]


def fill(root: Root, document: Any, given: QueryDict) -> Filled:
    """Return the document with what the address says. Without a value, it is the same object."""
    named = {name.removeprefix("p."): text for name, text in given.dict().items() if name.startswith("p.")}
    wanted = {name: str(text) for name, text in list(named.items())[:MOST_VALUES]}
    bare, refused = _left_out(document, given.getlist("without"))
    changed, taken = _with(root, bare, wanted)
    return Filled(changed, [*refused, *(name for name in named if name not in taken)])


def pairs_of(root: Root, example: Any, params: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the pairs that turn the example into these params, as far as pairs can."""
    said = ((name, value) for name, value in params.items() if _is_plain(name))
    texts = ((f"p.{name}", _text(shape_at(root, (name,)), value)) for name, value in said)
    left_out = [name for name in example if name not in params] if isinstance(example, dict) else []
    return [
        *((name, text) for name, text in texts if text is not None),
        *(("without", name) for name in left_out if _is_plain(name)),
    ]


def one_line(value: Any) -> str:
    """Return a value as JSON on one line, with the digits that were typed."""
    return " ".join(line.strip() for line in dump(value).split("\n"))


def _is_plain(name: str) -> bool:
    return bool(name) and "." not in name


def _text(shape: Shape, value: Any) -> str | None:
    """Return the text that is read as this value, if there is one: where text is wanted, `null` is a text."""
    texts = [value, one_line(value)] if isinstance(value, str) else [one_line(value)]
    return next((text for text in texts if dump(value_of(shape, text)) == dump(value)), None)


def _left_out(document: Any, names: list[str]) -> tuple[Any, list[str]]:
    refused = names[MOST_VALUES:]
    for name in names[:MOST_VALUES]:
        path = _path(document, name)
        if path is None:
            refused.append(name)
        elif at(document, path) is not MISSING:
            document = put(document, path, MISSING)
    return document, refused


def _with(root: Root, document: Any, named: Mapping[str, str]) -> tuple[Any, Mapping[str, Path]]:
    """Return the document with the values that have a place and are no secrets, and their paths.

    What is a secret may depend on other values, so that all are put before the secrets are searched, and put anew
    without them.
    """
    while True:
        changed, paths = document, dict[str, Path]()
        for name, text in named.items():
            path = _path(changed, name)
            if path is not None:
                paths[name] = path
                changed = put(changed, path, value_of(shape_at(root, path), text))
        secret = _at_secrets(root, changed, paths) if paths else set()
        if not secret:
            return changed, paths
        named = {name: text for name, text in named.items() if name not in secret}


def _at_secrets(root: Root, document: Any, paths: Mapping[str, Path]) -> set[str]:
    """Return the names of the values that are secrets, hold one or are in one."""
    places = {tuple(map(str, place)) for place in secret_places(document, root)}
    around = {start for place in places for start in _starts(place)}
    wanted = {name: tuple(map(str, path)) for name, path in paths.items()}
    return {
        name for name, path in wanted.items() if path in around or any(one in places for one in _starts(path))
    }


def _starts(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return (path[:length] for length in range(len(path) + 1))


def _path(document: Any, name: str) -> Path | None:
    """Return the path of `items.0.sku`. Numbers count in lists, from 0."""
    parts = name.split(".", MOST_PARTS)
    if len(parts) > MOST_PARTS:
        return None
    path: Path = ()
    for part in parts:
        here = at(document, path)
        if isinstance(here, list):
            if not _is_number(part) or int(part) >= len(here):
                return None
            path = (*path, int(part))
        elif not part or (here is not MISSING and not isinstance(here, dict)):
            return None
        else:
            path = (*path, part)
    return path


def _is_number(part: str) -> bool:
    return len(part) <= LONGEST_NUMBER and part.isascii() and part.isdecimal()


def shape_at(root: Root, path: Path) -> Shape:
    """Return what the schema asks for at a path; JSON if it does not say."""
    shape = shape_of(root, root)
    for part in path:
        about = shape.about
        if shape.kind == "list":
            shape = shape_of(root, about["items"])
        elif shape.kind == "group" and part in about["properties"]:
            shape = shape_of(root, about["properties"][str(part)])
        elif shape.kind == "map":
            shape = shape_of(root, about["additionalProperties"])
        else:
            return Shape("json")
    return shape


def value_of(shape: Shape, text: str) -> Any:
    """Return a value of the address: text where the schema wants text, else JSON, else text after all."""
    if shape.kind in ("text", "decimal") or (shape.kind == "choice" and text in shape.options):
        return text
    return parse(text) if read_text(text, "params").is_good else text
