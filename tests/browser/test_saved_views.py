"""Saved views in a browser: save a search, find it as a tab and in the navigation, send its link, delete it."""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.test_calm import COUNT_SHIFTS, LARGEST_SHIFT, shift
from tests.browser.test_search import FITS, start
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]


@pytest.fixture(scope="session", autouse=True)  # a process may come back to this module
def _naps(live_stack: LiveStack) -> None:
    start(live_stack, ids="viewed-{n}", count=2, seconds=50_000)


def save(page: Page, name: str, *, query: str) -> None:
    page.goto(f"/instances/?query={query}")
    page.get_by_role("button", name="Save…").click()
    page.get_by_label("Name").fill(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text=f"Saved {name}")).to_be_visible()


def test_a_saved_search_is_a_tab_a_line_of_the_navigation_and_a_link(signed_in: Page) -> None:
    page = signed_in
    save(page, "Long naps", query="id:viewed-")
    tab = page.locator("#views").get_by_role("link", name="Long naps")
    expect(tab).to_have_attribute("aria-current", "page")
    expect(tab.locator(".num")).to_have_text("2")
    address = page.url
    page.goto("/schedules/")
    line = page.get_by_role("navigation").get_by_role("link", name="Long naps")
    expect(line).to_contain_text("2")
    line.click()
    assert page.url == address
    expect(page.locator("#query")).to_have_value("id:viewed-")
    expect(page.locator("#list tbody tr")).to_have_count(2)

    page.get_by_role("link", name="Manage views").click()
    page.get_by_role("button", name="Rename…").click()
    page.get_by_role("textbox", name="Name").fill("Naps")
    page.keyboard.press("Enter")
    expect(page.locator("tr a", has_text="Naps")).to_be_visible()
    page.get_by_role("link", name="Delete…").click()
    page.get_by_role("button", name="Delete view").click()
    expect(page.get_by_text("No views of your own yet.")).to_be_visible()
    page.goto(address)
    expect(page.locator("#view-banner")).to_be_visible()
    expect(page.locator("#views").get_by_role("link", name="All")).to_have_attribute("aria-current", "page")


def test_the_tabs_stay_in_place_while_their_counts_arrive_and_fit_a_phone(signed_in: Page) -> None:
    page = signed_in
    save(page, "A view with a rather long name, as people give them", query="status:open")
    page.add_init_script(COUNT_SHIFTS)
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto("/instances/")
        expect(page.locator("#views .num").first).not_to_be_empty()
        page.wait_for_timeout(600)
        assert page.evaluate(FITS)
        assert shift(page) <= LARGEST_SHIFT


def test_views_work_without_javascript(
    browser: Browser, live_stack: LiveStack, session: StorageState
) -> None:
    plain = browser.new_context(java_script_enabled=False, storage_state=session, base_url=live_stack.url)
    with closing(plain):
        page = plain.new_page()
        page.goto("/instances/?query=workflow:nap")
        page.get_by_role("button", name="Save…").click()
        page.get_by_label("Name").fill("Plain")
        page.get_by_role("button", name="Save view").click()
        expect(page.locator("#views").get_by_role("link", name="Plain")).to_have_attribute(
            "aria-current", "page"
        )
        page.goto("/instances/views/")
        page.locator("tr", has_text="Plain").get_by_role("link", name="Delete…").click()
        page.get_by_role("button", name="Delete view").click()
        expect(page.locator("tr", has_text="Plain")).to_have_count(0)


@pytest.mark.parametrize("width", [390, 1440])
def test_all_of_the_navigation_can_be_reached_on_a_low_screen(signed_in: Page, width: int) -> None:
    page = signed_in
    page.set_viewport_size({"width": width, "height": 500})
    page.goto("/")
    if width < 900:
        page.get_by_role("button", name="More").click()
    sign_out = page.locator("form[action='/sign-out/'] button")
    for target in (sign_out, page.locator("#rail-more a.nav:visible").first):
        target.scroll_into_view_if_needed()
        expect(target).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0
