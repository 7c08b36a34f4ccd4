"""The heads of the list: links that sort it, and the columns that users have added."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from studio.instances.address import ListAddress


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column that sorts. `order` is the value of aria-sort; empty if another column sorts."""

    name: str
    sort: str
    address: str
    order: str
    about: str


@dataclass(frozen=True, slots=True)
class Column:
    """An added column: its path, the last part of it if no other column ends so, and the address without it."""

    name: str
    label: str
    without: str


_HEADS = (
    ("Started", "started", "newest first", "oldest first"),
    ("Finished", "finished", "last ended first", "first ended first"),
    ("Duration", "duration", "longest first", "shortest first"),
)


def heads_of(asked: ListAddress) -> list[Head]:
    """Return the heads. The first click sorts downwards, the next one turns the order around."""
    heads = []
    for name, sort, down, up in _HEADS:
        order = {f"-{sort}": "descending", sort: "ascending"}.get(str(asked.sort), "")
        is_next_up = order == "descending"
        target = sort if is_next_up else f"-{sort}"
        address = asked.url(sort="" if target == "-started" else target)
        heads.append(Head(name, sort, address, order, f"Sort: {up if is_next_up else down}"))
    return heads


def columns_of(asked: ListAddress) -> list[Column]:
    names = [".".join(path) for path in asked.columns]
    ends = Counter(path[-1] for path in asked.columns)
    return [
        Column(
            name,
            path[-1] if ends[path[-1]] == 1 else name,
            asked.url(columns=",".join(other for other in names if other != name)),
        )
        for name, path in zip(names, asked.columns, strict=True)
    ]
