"""A JSON value as a tree for the page, drawn as HTML. Numbers stay text: a browser would round 2^53 + 1."""

from __future__ import annotations

import json
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from engine.status.sentences import bidi
from engine.status.sentences.bidi import isolated_strings
from engine.values.serialization import Unreadable, decode, envelope, read_beginning
from studio.display.invisible import visible

FOLD_ABOVE = 20  # children; larger objects and lists start folded
FULL_UP_TO = 256 * 1024
CUT_AT = 16 * 1024
NODES = 2_000  # a page shows at most this many values of one payload
ITEMS = 100  # and this many of one object or list
LONGEST_STRING = 16 * 1024


@dataclass(frozen=True, slots=True)
class Node:
    """One value of the tree: a leaf with its text, or a container with children."""

    kind: str  # s string · a number, true, false, null · secret · object · array
    text: str
    key: str | None = None
    children: tuple[Node, ...] = ()
    more: str = ""  # what was left out

    @property
    def is_folded(self) -> bool:
        return len(self.children) > FOLD_ABOVE


@dataclass(frozen=True, slots=True)
class Payload:
    """A stored value as the page shows it: a tree; of a large value, its beginning."""

    what: str
    size: int
    text: str
    tree: Node | None
    problem: str = ""
    is_masked: bool = False
    is_cut: bool = False


def masked(what: str) -> Payload:
    return Payload(what, 0, "••••", None, is_masked=True)


def payload(what: str, text: str, size: int | None = None, *, full_up_to: int = FULL_UP_TO) -> Payload:
    """Return a value as the page shows it. `text` may be only the beginning of its `size` characters.

    Encrypted values are masked, in the tree and in the text.
    """
    size = len(text) if size is None else size
    shown = envelope.masked_text(text)
    if size > full_up_to or len(text) < size:
        return Payload(what, size, shown[:CUT_AT], _tree_of_beginning(text[:CUT_AT]), is_cut=True)
    size -= len(text) - len(shown)
    value = decode(text)
    if isinstance(value, Unreadable):
        return Payload(what, size, shown[:CUT_AT], None, problem=f"This value cannot be read: {value.reason}")
    left_out = [0]
    tree = _node(value, None, [NODES], left_out)
    if left_out[0]:
        return Payload(what, size, shown[:CUT_AT], tree, is_cut=True)
    return Payload(what, size, pretty(envelope.masked(value)), tree)


def _tree_of_beginning(text: str) -> Node | None:
    found = read_beginning(text)
    if found is None:
        return None
    value, unended = found
    return _node(value, None, [NODES], [0], unended=unended)


def pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def pretty_stored(value: object) -> str:
    """Return a value from a JSON column as text to edit. Secrets are masked and must be typed again."""
    return (
        envelope.masked_text(value.text) if isinstance(value, Unreadable) else pretty(envelope.masked(value))
    )


def stored_text(value: object) -> str:
    """Return a value from a JSON column as text. A value that could not be read stays as stored."""
    return value.text if isinstance(value, Unreadable) else json.dumps(value, ensure_ascii=False)


def preview(text: str, length: int = 80) -> str:
    """Return the beginning of a value on one line."""
    line = " ".join(text.split())
    return isolated_strings(visible(line if len(line) <= length else line[: length - 1] + "…"))


def one_line(stored: str, length: int = 80) -> str:
    """Return the beginning of a stored value, or of the beginning of one, on one line, with secrets masked."""
    value = decode(stored)
    if isinstance(value, Unreadable):
        return preview(envelope.masked_text(stored), length)
    return preview(json.dumps(envelope.masked(value), ensure_ascii=False), length)


def values_line(stored: str, length: int = 40) -> str:
    """Return the texts and numbers of a stored object, or of the beginning of one, without their keys.

    Secrets are masked. Empty if it has none, or is no object.
    """
    found = read_beginning(envelope.masked_text(stored))
    said = found[0].values() if found is not None and isinstance(found[0], dict) else ()
    parts = [
        one if isinstance(one, str) else json.dumps(one) for one in said if isinstance(one, str | int | float)
    ]
    return preview(" · ".join(part for part in parts if part), length) if parts else ""


def milestone(shown: Payload) -> tuple[str, str]:
    """Return the message and the percentage of a progress step."""
    said = decode(shown.text)
    message = said.get("message") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(message, str):
        return preview(shown.text), ""
    percent = said.get("percent")
    return preview(message, 120), "" if percent is None else f"{percent} %"


def _node(
    value: object, key: str | None, budget: list[int], left_out: list[int], *, unended: int = 0
) -> Node:
    """Build the tree of a value within a budget. `unended` levels of last children are cut off."""
    budget[0] -= 1
    if envelope.is_envelope(value):
        return Node("secret", envelope.MASK, key)
    if not isinstance(value, dict | list):
        return _leaf(value, key, left_out)
    items = list(value.items()) if isinstance(value, dict) else [(None, item) for item in value]
    children: list[Node] = []
    for at, (name, item) in enumerate(items[:ITEMS]):
        if budget[0] <= 0:
            break
        is_last = at == len(items) - 1
        children.append(
            _node(item, name, budget, left_out, unended=unended - 1 if is_last and unended else 0)
        )
    missing = len(items) - len(children)
    left_out[0] += missing
    kind, one, many = ("object", "key", "keys") if isinstance(value, dict) else ("array", "item", "items")
    if unended:
        return Node(kind, f"more than {len(children)} {many}", key, tuple(children), "… more")
    more = f"… {missing:,} more" if missing else ""
    return Node(kind, f"{len(items):,} {one if len(items) == 1 else many}", key, tuple(children), more)


def _leaf(value: object, key: str | None, left_out: list[int]) -> Node:
    if isinstance(value, str) and len(value) > LONGEST_STRING:
        left_out[0] += 1
        missing = len(value) - LONGEST_STRING
        text = _exact(value[:LONGEST_STRING])
        return Node("s", f"{text} … {missing:,} more characters", key)
    return Node("s" if isinstance(value, str) else "a", _exact(value), key)


def _exact(value: object) -> str:
    """Return a leaf as JSON in which every character is seen."""
    return isolated_strings(visible(json.dumps(value, ensure_ascii=False)))


def draw(node: Node, *, is_root: bool = False) -> SafeString:
    """Render a value and its children."""
    key = (
        format_html('<span class="k">{}</span>: ', bidi.isolated(visible(node.key)))
        if node.key is not None
        else SafeString("")
    )
    if node.kind == "secret":
        about = "Stored encrypted; only the workflow can read it."
        return format_html(
            '{}<span class="s" title="{}">{}</span> <span class="muted">secret</span>', key, about, node.text
        )
    if node.kind not in ("object", "array"):
        return format_html('{}<span class="{}">{}</span>', key, node.kind, node.text)
    opening, closing = ("{", "}") if node.kind == "object" else ("[", "]")
    if not node.children:
        return format_html("{}{}{}{}", key, opening, node.more, closing)
    items = format_html_join("", "<li>{}</li>", ((draw(child),) for child in node.children))
    if node.more:
        items += format_html('<li class="muted">{}</li>', node.more)
    if node.key is None and not node.is_folded:
        return format_html("{}<ul>{}</ul>{}", opening, items, closing)
    return format_html(
        "<details{}><summary>{}{} {}</summary><ul>{}</ul></details>",
        SafeString("") if node.is_folded and not is_root else mark_safe(" open"),
        key,
        opening + closing,
        node.text,
        items,
    )
