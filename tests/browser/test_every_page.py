"""No page, whoever looks at it and how, has a fault that axe finds or a complaint of the browser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import every_page
from tests.browser.conftest import Complaints, profile, sign_in
from tests.conftest import copy_database, home_directory
from tests.live import PASSWORD, LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

AXE = Path(__file__).parent / "axe" / "axe.min.js"
RUN = """
async (rules) => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice"];
  const options = { resultTypes: ["violations"], runOnly: rules ?? tags };
  const { violations } = await axe.run(document, options);
  return violations.flatMap(({ id, impact, nodes }) => nodes.map((node) => `${id} (${impact}): ${node.target}`));
}
"""
OF_COLOURS = ["color-contrast", "link-in-text-block"]
# What a script draws after the page has loaded.
DRAWN_LATER = {"/api/v1/docs": "#operations-Operations-read_me"}
# Menus cover the page, and each other.
OPEN_ALL = "document.querySelectorAll('main details:not(.menu)').forEach((one) => { one.open = true })"


@pytest.fixture
def places(live_stack: LiveStack, signed_in: Page) -> dict[str, tuple[str, ...]]:
    return every_page.fill(live_stack, signed_in)


@pytest.fixture
def empty_stack(migrated_home: Path) -> Iterator[LiveStack]:
    """A Studio in which nothing has happened yet."""
    with home_directory() as home:
        copy_database(migrated_home, home)
        stack = LiveStack(home).start()
        try:
            yield stack
        finally:
            stack.stop()


def faults(page: Page, addresses: Iterable[str]) -> dict[str, set[str]]:
    """Return what axe finds at both widths and in both themes, by address; all details are open."""
    axe, found = AXE.read_text(), {}
    for address in addresses:
        page.emulate_media(color_scheme="light")
        page.goto(address)
        if address in DRAWN_LATER:
            page.wait_for_selector(DRAWN_LATER[address])
        page.evaluate(OPEN_ALL)
        page.evaluate(axe)
        seen: set[str] = set()
        for width in (390, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                rules = None if scheme == "light" else OF_COLOURS  # the others do not depend on it
                seen |= {f"{width} {scheme} {fault}" for fault in page.evaluate(RUN, rules)}
        if seen:
            found[address] = seen
    return found


def test_axe_finds_nothing_on_any_page(
    signed_in: Page, complaints: Complaints, places: dict[str, tuple[str, ...]]
) -> None:
    complaints.allow("404")
    assert set(places) == every_page.pages(), "Each page is looked at: name its addresses in every_page.py"
    addresses = [address for name, all_of_it in places.items() if name != "sign-in" for address in all_of_it]
    assert faults(signed_in, [*addresses, *every_page.NOT_THERE]) == {}


def test_axe_finds_nothing_where_nothing_has_happened(
    browser: Browser, complaints: Complaints, empty_stack: LiveStack
) -> None:
    with profile(browser, complaints, base_url=empty_stack.url) as context:
        page = context.new_page()
        assert faults(page, ["/sign-in/"]) == {}
        sign_in(page, empty_stack)
        assert (
            faults(page, [address for name in every_page.EMPTY for address in every_page.PLAIN[name]]) == {}
        )


def test_no_page_has_a_complaint_for_any_role(
    browser: Browser, live_stack: LiveStack, places: dict[str, tuple[str, ...]]
) -> None:
    """A script error, a report of the content security policy, an answer of 500 and above."""
    addresses = [*(address for all_of_it in places.values() for address in all_of_it), *every_page.NOT_THERE]
    found = {}
    for role in (*every_page.ROLES, "nobody"):
        complaints = Complaints()
        complaints.allow(r"responded with a status of 40[34]")
        with profile(browser, complaints, base_url=live_stack.url) as context:
            page = context.new_page()
            if role != "nobody":
                sign_in(page, live_stack, f"every-{role}", PASSWORD)
            for address in addresses:
                page.goto(address)
                if role == "nobody" and address not in every_page.NOT_THERE:
                    assert page.url.startswith(f"{live_stack.url}/sign-in/"), address
        if complaints.unexpected():
            found[role] = complaints.unexpected()
    assert found == {}
