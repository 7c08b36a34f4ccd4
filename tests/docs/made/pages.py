"""The pages with tables that are made, and what makes each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tests.docs.made import api, checks, commands, errors, http, settings, states
from tests.docs.pages import PROJECT

# What stands between two such lines is made.
_MADE = re.compile(r"(<!-- made: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)

SECTIONS: Mapping[str, Callable[[], str]] = {
    "checks": checks.checks,
    "settings": settings.settings,
    **api.SECTIONS,
    **commands.SECTIONS,
    **errors.SECTIONS,
    **http.SECTIONS,
    **states.SECTIONS,
}
REFERENCE = PROJECT / "docs" / "reference"
PAGES = [
    PROJECT / "docs" / "api.md",
    PROJECT / "docs" / "existing-project.md",
    PROJECT / "docs" / "settings.md",
    *(REFERENCE / name for name in ("api.md", "errors.md", "states.md", "command-line.md")),
]


def made(text: str) -> str:
    """Return a page with its tables as the code has them today."""
    return _MADE.sub(lambda found: f"{found[1]}{SECTIONS[found[2]]()}\n{found[3]}", text)


def names(text: str) -> list[str]:
    """List the made parts of a page."""
    return [found[2] for found in _MADE.finditer(text)]
