"""The stream of an instance and the comparison of two, in a browser: live, by keyboard, and on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_calm import COUNT_SHIFTS, LARGEST_SHIFT, shift
from tests.browser.test_journey import NewTab, live
from tests.browser.test_notes import post
from tests.browser.test_search import FITS, start
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

TICKS = """
from engine import workflows
for n in range(2):
    workflows["tick"].start(None, id=f"compared-{n}")
"""


def test_what_is_new_waits_above_the_stream(signed_in: Page, new_tab: NewTab, live_stack: LiveStack) -> None:
    start(live_stack, ids="streamed-{n}", count=1, seconds=50_000)
    page, other = signed_in, new_tab()
    page.add_init_script(COUNT_SHIFTS)
    for tab in (page, other):
        tab.goto("/workflows/nap/instances/streamed-0/?tab=activity")
        live(tab)
    rows = page.locator("#activity-rows > li")
    count = rows.count()
    post(other, "The first.")
    expect(other).to_have_url(re.compile(r"\?tab=activity$"))  # back where it was written
    expect(other.locator("#activity-rows .text").first).to_have_text("The first.")
    post(other, "The second.")

    news = page.locator("[data-show]")
    expect(news).to_have_text("2 new · show")
    expect(rows).to_have_count(count)
    news.click()
    expect(rows).to_have_count(count + 2)
    expect(page.locator("#activity-rows .text")).to_have_text(["The second.", "The first."])
    expect(page.locator("#activity-rows .gone")).to_have_count(0)
    expect(page.locator("#tabs [aria-current]")).to_have_text(re.compile(rf"Activity\s+{count + 2}"))
    assert shift(page) <= LARGEST_SHIFT

    page.get_by_role("navigation", name="Kinds of activity").get_by_role("link", name="Notes").press("Enter")
    expect(page).to_have_url(re.compile("kind=notes"))
    expect(rows).to_have_count(2)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(FITS)


def test_two_runs_are_compared(signed_in: Page, live_stack: LiveStack) -> None:
    live_stack.django(TICKS)
    page = signed_in
    page.goto("/workflows/tick/instances/compared-1/")
    expect(page.locator("#head .chip")).to_have_text("complete")
    page.get_by_role("link", name="Compare").click()
    verdict = page.locator("#verdict")
    expect(verdict).to_contain_text("Same path")
    field = page.get_by_role("combobox", name="ID of another instance")
    field.fill("no-such-one")
    field.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("There is no instance no-such-one of tick.")
    field.fill("compared-0")
    field.press("Enter")
    expect(verdict).to_contain_text("same params")
    expect(page.locator(".sides.path tbody th")).to_have_text("count")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(FITS)
