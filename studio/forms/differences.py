"""What differs between two documents, by path; and which fields a schema does not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from studio.forms.document import MISSING, dump, location
from studio.forms.shape import shape_of

LONGEST = 80  # characters of a value
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that was changed, added (`before` is empty) or removed (`after` is empty)."""

    where: str
    before: str
    after: str


def differences(before: Any, after: Any, most: int) -> tuple[list[Difference], int]:
    """Return the first differences, and how many more there are."""
    found = list(_differences(before, after, ()))
    return found[:most], max(0, len(found) - most)


def _differences(before: Any, after: Any, path: Path) -> Iterator[Difference]:
    keys: list[str] | list[int] = []
    if isinstance(before, dict) and isinstance(after, dict):
        keys = list(dict.fromkeys([*before, *after]))
    elif isinstance(before, list) and isinstance(after, list):
        keys = list(range(max(len(before), len(after))))
    elif before is MISSING or after is MISSING or dump(before) != dump(after):
        yield Difference(location(path) or "value", _short(before), _short(after))
    for key in keys:
        yield from _differences(_member(before, key), _member(after, key), (*path, key))


def _member(value: Any, key: str | int) -> Any:
    if isinstance(value, list):
        return value[key] if isinstance(key, int) and key < len(value) else MISSING
    return value.get(key, MISSING)


def _short(value: Any) -> str:
    if value is MISSING:
        return ""
    text = " ".join(dump(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def unknown_fields(root: Mapping[str, Any] | None, value: Any, most: int = 20) -> list[str]:
    """Return the paths of fields that the schema does not name. Looks only where a form can."""
    return (
        []
        if root is None
        else [location(path) for path, _ in zip(_unknown(root, root, value, ()), range(most), strict=False)]
    )


def _unknown(root: Mapping[str, Any], node: Any, value: Any, path: Path) -> Iterator[Path]:
    shape = shape_of(
        root, node
    )  # without what leads here: the document has an end, even if its type has none
    if shape.kind == "list" and isinstance(value, list):
        for at, item in enumerate(value):
            yield from _unknown(root, shape.about["items"], item, (*path, at))
    if shape.kind == "map" and isinstance(value, dict):
        for name, item in value.items():
            yield from _unknown(root, shape.about["additionalProperties"], item, (*path, name))
    if shape.kind != "group" or not isinstance(value, dict):
        return
    for name, item in value.items():
        if name in shape.about["properties"]:
            yield from _unknown(root, shape.about["properties"][name], item, (*path, name))
        elif not shape.about.get("additionalProperties"):
            yield (*path, name)
