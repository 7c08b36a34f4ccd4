"""The tags of an instance: short texts to find it by."""

from __future__ import annotations

from collections.abc import Iterable

from engine.values.errors import InvalidNameError, LimitError
from engine.values.identity import check_tag

MAX_TAGS = 50


def check_tags(tags: Iterable[str] | None) -> list[str]:
    """Return each tag once, in the order given. Raises InvalidNameError or LimitError."""
    if isinstance(tags, str):
        raise InvalidNameError("a list of tags", tags, "It must be a list of strings.")
    checked = list(dict.fromkeys(check_tag(tag) for tag in tags or ()))
    if len(checked) > MAX_TAGS:
        raise LimitError("number of tags", len(checked), MAX_TAGS)
    return checked
