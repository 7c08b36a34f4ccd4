"""The page of charts: read by keyboard, kept up to date without making a chart again, and steady meanwhile."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.test_calm import COUNT_SHIFTS, shift
from tests.browser.test_journey import live
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

START = "from tests.sample.workflows import tick; tick.start()"
WHERE = "/charts/?workflow=tick&range=90d"


def drawn(page: Page) -> None:
    live(page)
    expect(page.locator(".plot canvas")).to_have_count(4)


def started(page: Page) -> Locator:
    return page.locator("#chart-throughput [data-look=started] b")


@pytest.mark.parametrize("width", [390, 1440])
def test_a_chart_gets_new_numbers_and_nothing_moves(
    signed_in: Page, live_stack: LiveStack, width: int
) -> None:
    page = signed_in
    page.set_viewport_size({"width": width, "height": 900})
    page.add_init_script(COUNT_SHIFTS)
    page.goto(WHERE)
    drawn(page)
    before = started(page).inner_text()
    canvas = page.locator("#plot-throughput canvas")
    canvas.evaluate("canvas => { canvas.dataset.first = 'yes' }")
    live_stack.django(START)
    expect(started(page)).not_to_have_text(before)
    expect(canvas).to_have_attribute("data-first", "yes")
    assert shift(page) == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("#numbers-throughput").click()
    expect(page.locator("#now-throughput td").first).not_to_have_text("0")


def test_values_are_read_by_keyboard(signed_in: Page) -> None:
    page = signed_in
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_url("**/charts/")
    page.goto(WHERE)
    drawn(page)
    whole = started(page).inner_text()
    today = page.locator("#now-throughput td").first
    page.locator("#plot-throughput").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#say")).to_have_text(
        re.compile(r"\(UTC\) so far: started \d+, completed \d+, errored \d+, terminated \d+")
    )
    expect(started(page)).to_have_text(today.text_content() or "none")
    expect(page.locator("#chart-latency .when")).to_have_text(re.compile("so far"))  # the others follow
    page.keyboard.press("Home")
    expect(page.locator("#say")).to_have_text(re.compile(r"\(UTC\): started 0, completed 0"))
    expect(started(page)).to_have_text("0")
    page.keyboard.press("Escape")
    expect(started(page)).to_have_text(whole)
