"""Home at night in a browser: what fails is one row, live, by keys, on a phone, and calm."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.test_calm import COUNT_SHIFTS, LARGEST_SHIFT, shift
from tests.browser.test_errors import stumble
from tests.browser.test_journey import live
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

TITLE = "stumble: There is a stone in the way."
# Other tests fail with it, too, and may have resolved it.
REOPEN = """
from engine import failures
for group in failures.groups(workflow="stumble", state="").groups:
    if group.state != "open":
        failures.reopen(group.fingerprint, by="test")
"""


@pytest.fixture
def night(live_stack: LiveStack, signed_in: Page) -> Page:
    stumble(signed_in, 3)
    signed_in.goto("/errors/?workflow=stumble&state=")
    expect(signed_in.locator("#errors-list")).to_contain_text("There is a stone in the way.")
    live_stack.django(REOPEN)
    return signed_in


def row(page: Page) -> Locator:
    return page.locator(".groups > li", has=page.get_by_role("link", name=TITLE, exact=True))


def number(page: Page) -> int:
    return int(row(page).locator(".number").inner_text().replace(",", "").rstrip("+"))


def test_what_fails_is_one_row_that_grows_live_and_opens_by_keys(night: Page) -> None:
    page = night
    page.goto("/")
    live(page)
    before = number(page)
    assert before >= 3
    expect(page.locator("h1")).to_have_text(re.compile(r"since \d\d:\d\d\.$"))
    stumble(page, 2)
    expect(row(page).locator(".number")).to_have_text(str(before + 2))
    expect(row(page).locator(".hour-bars")).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator(".groups > li").first).to_have_class(re.compile(r"\bselected\b"))
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/(errors|instances|workers|approvals|schedules|workflows)/"))


def test_a_row_opens_wherever_it_is_pressed(night: Page) -> None:
    page = night
    page.goto("/")
    title = row(page).get_by_role("link", name=TITLE, exact=True).get_attribute("href")
    row(page).locator(".number").click()
    page.wait_for_url(f"**{title}")


def test_the_switch_leaves_what_is_mine_and_stays_in_the_address(night: Page) -> None:
    page = night
    page.goto("/")
    page.get_by_role("navigation", name="Whose").get_by_role("link", name=re.compile("Mine")).click()
    page.wait_for_url("**/?who=mine")
    live(page)
    before = number(page)  # admin has started them
    stumble(page)
    expect(row(page).locator(".number")).to_have_text(str(before + 1))
    expect(page.get_by_role("navigation", name="Whose").locator("[aria-current]")).to_contain_text("Mine")


def test_the_search_leads_to_the_list(signed_in: Page) -> None:
    page = signed_in
    page.goto("/")
    page.keyboard.press("/")
    page.keyboard.type("status:errored")
    page.keyboard.press("Enter")
    page.wait_for_url("**/instances/?query=status*")


def test_it_fits_a_phone_whose_buttons_are_large(night: Page) -> None:
    page = night
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for width in (390, 1000, 1440, 1920):
            page.set_viewport_size({"width": width, "height": 844})
            page.goto("/")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (scheme, width)
    page.set_viewport_size({"width": 390, "height": 844})
    button = row(page).locator(".act .button").first
    box = button.bounding_box()
    assert box is not None
    assert box["height"] >= 44


def test_what_arrives_waits_until_somebody_asks_for_it(night: Page) -> None:
    page = night
    page.add_init_script(COUNT_SHIFTS)
    page.goto("/")
    live(page)
    first, show = page.locator("#start-rows > li").first, page.get_by_role("button", name="new · show")
    before = first.get_attribute("id") or ""
    stumble(page)
    expect(show).to_be_visible()
    expect(first).to_have_id(before)
    assert shift(page) <= LARGEST_SHIFT
    show.click()
    expect(first).not_to_have_id(before)
    expect(show).to_be_hidden()


@pytest.mark.parametrize("width", [390, 1440])
def test_it_does_not_jump_while_more_fails(night: Page, width: int) -> None:
    page = night
    page.set_viewport_size({"width": width, "height": 900})
    page.add_init_script(COUNT_SHIFTS)
    page.goto("/")
    live(page)
    before = number(page)
    stumble(page, 2)
    expect(row(page).locator(".number")).to_have_text(str(before + 2))
    assert shift(page) <= LARGEST_SHIFT
