"""Docstrings as Markdown: with links to the errors and types that they name."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

WIDTH = 118
_PARTS = re.compile(r"(`[^`]*`)")
_NAME = re.compile(r"(?<![\w.])[A-Z]\w+")


_PAGE = re.compile(r"`?docs/(reference/)?([\w-]+)\.md`?")


def linked(text: str, links: Mapping[str, str]) -> str:
    """Return a docstring with a link for each known name; code in it stays as it is."""
    text = _PAGE.sub(lambda one: f"[{one[2]}.md]({'' if one[1] else '../'}{one[2]}.md)", text)
    blocks = re.split(r"\n{2,}", text)
    return "\n\n".join(one if one.startswith("    ") else wrapped(_linked(one, links)) for one in blocks)


def wrapped(text: str, indent: str = "") -> str:
    """Return a paragraph in lines; `indent` begins all but the first."""
    lines = textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)


def _linked(text: str, links: Mapping[str, str]) -> str:
    def link(found: re.Match[str]) -> str:
        target = links.get(found[0])
        return found[0] if target is None else f"[`{found[0]}`]({target})"

    parts = _PARTS.split(text)
    return "".join(one if one.startswith("`") else _NAME.sub(link, one).replace("*", "\\*") for one in parts)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a column without any content is left out."""
    given = [list(row) for row in rows]
    kept = [at for at, head in enumerate(heads) if at == 0 or any(row[at] for row in given)]
    lines = [[heads[at] for at in kept], ["---"] * len(kept), *([row[at] for at in kept] for row in given)]
    return "\n".join(f"| {' | '.join(one)} |" for one in lines)


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def code(text: str | None) -> str:
    return f"`{cell(text)}`" if text else ""
