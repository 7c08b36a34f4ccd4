"""Render a JSON value as HTML that folds without JavaScript."""

from __future__ import annotations

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from engine.status.sentences import bidi
from studio.display.payloads import Node


def draw(node: Node, *, is_root: bool = False) -> SafeString:
    """Render a value and its children."""
    key = (
        format_html('<span class="k">{}</span>: ', bidi.isolated(node.key))
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
