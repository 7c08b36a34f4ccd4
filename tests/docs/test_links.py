"""The links between pages work."""

from __future__ import annotations

import re

from tests.docs.pages import PAGES, PROJECT

LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")


def _anchors(text: str) -> set[str]:
    """Return the anchors of the headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_link_leads_somewhere() -> None:
    lost = []
    for page in PAGES:
        for target, anchor in LINK.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
            if "://" in target:
                continue
            other = (page.parent / target).resolve() if target else page
            is_there = other.exists() and other.is_relative_to(PROJECT)
            if not is_there or (anchor and anchor not in _anchors(other.read_text())):
                lost.append(f"{page.name}: {target}#{anchor}")
    assert lost == []


def test_every_page_is_in_the_index_and_the_index_in_the_readme() -> None:
    index = (PROJECT / "docs" / "README.md").read_text()
    docs = PROJECT / "docs"
    names = {str(page.relative_to(docs)) for page in PAGES if page.is_relative_to(docs)} - {"README.md"}
    assert sorted(name for name in names if f"]({name})" not in index) == []
    assert "](docs/README.md)" in (PROJECT / "README.md").read_text()
