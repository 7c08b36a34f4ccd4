"""Read what the page of an instance offers."""

from __future__ import annotations

import re

_BUTTON = re.compile(r'<(?:button|a)\b[^>]*?id="act-.*?</(?:button|a)>', re.DOTALL)


def choices(page: str) -> list[str]:
    """Return the HTML of the actions: the one that stands out, then those in the menu."""
    actions = page[page.index('id="actions"') :]
    return _BUTTON.findall(actions[: actions.index('id="tabs"')])


def labels(page: str) -> list[str]:
    return [" ".join(re.sub(r"<[^>]+>", "", one).split()) for one in choices(page)]
