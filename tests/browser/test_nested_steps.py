"""A map on the page of its instance: folded, opened, and open while it moves on."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_journey import NewTab, choose, live, status, type_json

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

LETTERS = 60


def test_a_map_is_opened_stays_open_while_it_moves_on_and_is_folded_again(
    signed_in: Page, new_tab: NewTab
) -> None:
    page = signed_in
    page.goto("/workflows/sort-letters/start/")
    type_json(page, f'{{"letters": {LETTERS}}}')
    page.get_by_role("button", name="Start sort-letters").click()
    page.wait_for_url("**/instances/**")
    live(page)

    # One row for all of them.
    expect(page.locator("#s-1 .said")).to_have_text(re.compile(r"59 of 60 done\s+·\s+1 (retrying|running)"))
    expect(page.locator("#steps > tr.row")).to_have_count(1)

    # Unfinished items are listed first, and can be opened too.
    page.goto(f"{page.url}?step=1")
    live(page)
    items = page.locator("#g-1 > .steps > li")
    expect(items).to_have_count(50)
    expect(items.first).to_contain_text("letters[59]")
    last = page.locator(f"#d-{LETTERS + 1}")
    last.locator("> summary").press("Enter")  # it may move meanwhile
    expect(last.locator(".attempts").first).to_contain_text("The address cannot be read.")

    # It moves on: counts and attempts are those of now, and what was opened is open.
    seen = last.locator(".attempts > li[id]").count()
    expect(last.locator(f"#s-{LETTERS + 1}-a{seen + 2}")).to_be_attached(timeout=20_000)
    expect(last).to_have_attribute("open", "")
    page.get_by_role("link", name="Next").press("Enter")  # it moves while attempts come in above it
    expect(items).to_have_count(10)
    other = new_tab()
    other.goto(page.url)
    choose(other, "Send event…")
    other.fill("#event-type", "readable")
    other.get_by_role("button", name="Send", exact=True).click()
    status(page, "complete", seconds=30)
    expect(page.locator("#s-1 .said")).to_have_text("60 of 60 done")
    expect(page.locator("#pane")).to_be_visible()
    expect(page.locator("#g-1")).to_contain_text("51 to 60 of 60")
    expect(items.last).to_contain_text(re.compile(r"letters\[59\]"))

    page.locator("#s-1 a.open").click()
    expect(page.locator("#g-1")).to_be_hidden()


def test_keys_show_and_hide_the_rows_inside_a_step_and_they_stay_live(
    signed_in: Page, new_tab: NewTab
) -> None:
    page = signed_in
    page.goto("/workflows/sort-letters/start/")
    type_json(page, f'{{"letters": {LETTERS}}}')
    page.get_by_role("button", name="Start sort-letters").click()
    page.wait_for_url("**/instances/**")
    live(page)
    expect(page.locator("#s-1 .said")).to_have_text(re.compile(r"59 of 60 done\s+·\s+1 (retrying|running)"))
    rows = page.locator("#steps > tr.row")
    page.locator("#s-1 a.open").press("ArrowRight")
    expect(rows).to_have_count(51)
    live(page)
    page.locator("#m-1").get_by_role("link", name="Next").click()
    expect(rows).to_have_count(11)
    live(page)
    last = page.locator(f"#s-{LETTERS + 1}")
    expect(last).to_have_class(re.compile("s-(retrying|running)"))
    other = new_tab()
    other.goto(page.url)
    choose(other, "Send event…")
    other.fill("#event-type", "readable")
    other.get_by_role("button", name="Send", exact=True).click()
    expect(last).to_have_class(re.compile("s-complete"), timeout=30_000)
    page.locator("#s-1 a.open").press("ArrowLeft")
    expect(rows).to_have_count(1)
