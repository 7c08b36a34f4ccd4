"""A JSON value as a tree that the page folds without a script. Numbers stay text: a browser would round 2^53 + 1."""

from __future__ import annotations

import json
from dataclasses import dataclass

from engine.serialization import Unreadable, decode

FOLD_ABOVE = 20  # children; larger objects and lists start folded
FULL_UP_TO = 64 * 1024
CUT_AT = 16 * 1024
NODES = 2_000  # a page draws at most this many values of one payload


@dataclass(frozen=True, slots=True)
class Node:
    """One value of the tree: a leaf with its text, or a container with children."""

    kind: str  # s string · a number, true, false, null · object · array
    text: str
    key: str | None = None
    children: tuple[Node, ...] = ()

    @property
    def is_folded(self) -> bool:
        return len(self.children) > FOLD_ABOVE


@dataclass(frozen=True, slots=True)
class Payload:
    """What the page shows of a stored value: a tree, or the beginning of it when it is large."""

    what: str
    size: int
    text: str
    tree: Node | None
    problem: str = ""
    is_masked: bool = False

    @property
    def is_cut(self) -> bool:
        return self.tree is None and not self.problem and not self.is_masked


def masked(what: str) -> Payload:
    return Payload(what, 0, "••••", None, is_masked=True)


def payload(what: str, text: str, size: int | None = None, *, full_up_to: int = FULL_UP_TO) -> Payload:
    """Make what the page shows; `text` may be only the beginning of a value of `size` characters."""
    size = len(text) if size is None else size
    if size > full_up_to or len(text) < size:
        return Payload(what, size, text[:CUT_AT], None)
    value = decode(text)
    if isinstance(value, Unreadable):
        return Payload(what, size, text[:CUT_AT], None, problem=f"This value cannot be read: {value.reason}")
    budget = [NODES]
    tree = _node(value, None, budget)
    if budget[0] < 0:
        return Payload(what, size, pretty(value)[:CUT_AT], None)
    return Payload(what, size, pretty(value), tree)


def pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def pretty_stored(value: object) -> str:
    """Write a value that was read from a JSON column for people to edit."""
    return value.text if isinstance(value, Unreadable) else pretty(value)


def stored_text(value: object) -> str:
    """Write a value that was read from a JSON column as text again; what could not be read stays as it was stored."""
    return value.text if isinstance(value, Unreadable) else json.dumps(value, ensure_ascii=False)


def preview(text: str, length: int = 80) -> str:
    """Give the beginning of a value on one line."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def milestone(shown: Payload) -> str:
    """Give what a progress step said, with its percentage."""
    said = decode(shown.text)
    message = said.get("message") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(message, str):
        return preview(shown.text)
    percent = said.get("percent")
    return preview(message if percent is None else f"{message} · {percent} %", 120)


def _node(value: object, key: str | None, budget: list[int]) -> Node:
    budget[0] -= 1
    if budget[0] < 0:
        return Node("a", "…", key)
    if isinstance(value, dict):
        children = tuple(_node(item, name, budget) for name, item in value.items())
        return Node("object", f"{len(value)} {'key' if len(value) == 1 else 'keys'}", key, children)
    if isinstance(value, list):
        children = tuple(_node(item, None, budget) for item in value)
        return Node("array", f"{len(value)} {'item' if len(value) == 1 else 'items'}", key, children)
    return Node("s" if isinstance(value, str) else "a", json.dumps(value, ensure_ascii=False), key)
