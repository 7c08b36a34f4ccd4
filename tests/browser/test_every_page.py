"""No page, whoever looks at it and how, has a fault that axe finds or a complaint of the browser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page

from tests.browser import every_page
from tests.browser.conftest import Complaints, profile, sign_in
from tests.conftest import copy_database, home_directory
from tests.live import PASSWORD, LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

AXE = Path(__file__).parent / "axe" / "axe.min.js"
RUN = """
async ([rules, place]) => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice"];
  const options = { resultTypes: ["violations"], runOnly: rules ?? tags };
  const late = new Promise((_, fail) => setTimeout(() => fail(new Error("axe did not end in 2 minutes")), 120_000));
  const looked = axe.run(document.getElementById(place) ?? document, options);
  const { violations } = await Promise.race([looked, late]);
  return violations.flatMap(({ id, impact, nodes }) => nodes.map((node) => `${id} (${impact}): ${node.target}`));
}
"""
OF_COLOURS = ["color-contrast", "link-in-text-block"]
SWAGGER = "#swagger-ui"  # what it draws is not ours
# What a script draws after the page has loaded.
DRAWN_LATER = {"/api/v1/docs": "#operations-Operations-read_me"}
# Scripts hear of another theme at the next frame, and colors may take a while to follow: Swagger UI has transitions.
# A browser may stop drawing, and the test would wait for ever.
NEXT_FRAME = """
new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(() => done()));
  setTimeout(done, 2000);
}).then(() => {
  for (const one of document.getAnimations()) if (one instanceof CSSTransition) one.finish();
})
"""
# What the socket sends goes to where its ID is.
TWICE = """
(drawn) => {
  const ids = [...document.querySelectorAll("[id]")].filter((one) => !one.closest(drawn)).map(({ id }) => id);
  return ids.filter((id, at) => ids.indexOf(id) < at).map((id) => `the ID ${id} is there twice`);
}
"""
# Menus cover the page, and each other.
OPEN_ALL = "document.querySelectorAll('main details:not(.menu)').forEach((one) => { one.open = true })"

CLOSED = """
() => [...document.querySelectorAll("dialog[id], [popover][id], main details.menu")].map((one) => {
  one.id ||= `menu ${one.querySelector("summary").textContent.trim()}`;
  return one.id;
})
"""
OPEN = """
(id) => {
  const one = document.getElementById(id);
  if (one.matches("dialog")) one.showModal();
  else if (one.matches("details")) one.open = true;
  else one.showPopover();
}
"""
CLOSE = """
(id) => {
  const one = document.getElementById(id);
  if (one.matches("dialog")) one.close();
  else if (one.matches("details")) one.open = false;
  else one.hidePopover();
}
"""


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
    """Return IDs that are there twice, and what axe finds at both widths and in both themes, by address.

    All details are open.
    """
    found = {}
    for address in addresses:
        with named(address):
            page.goto(address)
            if address in DRAWN_LATER:
                page.wait_for_selector(DRAWN_LATER[address])
            page.evaluate(OPEN_ALL)
            page.evaluate(AXE.read_text())
            found[address] = seen_by_axe(page) | {*page.evaluate(TWICE, SWAGGER)}
    return {address: seen for address, seen in found.items() if seen}


@contextmanager
def named(address: str) -> Iterator[None]:
    """Say on which of the many pages the browser failed."""
    try:
        yield
    except Error as error:
        error.add_note(f"at {address}")
        raise


def seen_by_axe(page: Page, place: str | None = None) -> set[str]:
    """Return what axe finds on the whole page, or in the element with this id."""
    seen: set[str] = set()
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.evaluate(NEXT_FRAME)
            rules = None if scheme == "light" else OF_COLOURS  # the others do not depend on it
            seen |= {f"{width} {scheme} {fault}" for fault in page.evaluate(RUN, [rules, place])}
    return seen


def faults_of_what_opens(page: Page, addresses: Iterable[str]) -> dict[str, set[str]]:
    """Return what axe finds in each menu, dialog and sheet, by its id; what is on many pages is opened once."""
    found: dict[str, set[str]] = {}
    for address in addresses:
        with named(address):
            page.goto(address)
            page.evaluate(AXE.read_text())
            _open_each(page, found)
    return found


def _open_each(page: Page, found: dict[str, set[str]]) -> None:
    for one in page.evaluate(CLOSED):
        if one not in found:
            page.evaluate(OPEN, one)
            found[one] = seen_by_axe(page, one)
            page.evaluate(CLOSE, one)
    sheet = page.locator("a.to-sheet:visible")
    if sheet.count() and "sheet" not in found:
        sheet.first.click()
        page.wait_for_selector("#sheet[open] #sheet-title")
        found["sheet"] = seen_by_axe(page, "sheet")


@pytest.mark.long
def test_axe_finds_nothing_on_any_page(
    signed_in: Page, complaints: Complaints, places: dict[str, tuple[str, ...]]
) -> None:
    complaints.allow("404")
    assert set(places) == every_page.pages(), "Each page is looked at: name its addresses in every_page.py"
    addresses = [address for name, all_of_it in places.items() if name != "sign-in" for address in all_of_it]
    assert faults(signed_in, [*addresses, *every_page.NOT_THERE]) == {}


@pytest.mark.long
def test_axe_finds_nothing_in_any_menu_dialog_or_sheet(
    signed_in: Page, places: dict[str, tuple[str, ...]]
) -> None:
    addresses = [address for name, all_of_it in places.items() if name != "sign-in" for address in all_of_it]
    found = faults_of_what_opens(signed_in, addresses)
    signed_in.keyboard.press("?")
    signed_in.wait_for_selector("#keys[open]")
    found["keys"] = seen_by_axe(signed_in, "keys")
    assert {"rail-more", "terminate", "ignore", "save-view", "menu Columns", "sheet"} <= {*found}
    assert {one: seen for one, seen in found.items() if seen} == {}


@pytest.mark.long
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


@pytest.mark.long
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
