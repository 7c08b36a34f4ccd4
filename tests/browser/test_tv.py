"""The wall screen in a browser: numbers that are no longer true never look as if they were."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Complaints
from tests.browser.test_journey import live
from tests.browser.test_live import Line

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

FITS = """() => {
  const page = document.documentElement;
  return page.scrollWidth <= innerWidth && page.scrollHeight <= innerHeight;
}"""


def test_it_says_since_when_it_is_not_live_and_comes_back(signed_in: Page, complaints: Complaints) -> None:
    page = signed_in
    line = Line(page, complaints)
    page.goto("/tv/")
    live(page)
    stale, board = page.locator("#tv-stale"), page.locator("#tv-board")
    expect(stale).to_be_hidden()
    line.cut()
    expect(stale).to_contain_text(re.compile(r"^\s*Not live since \d\d:\d\d"))
    expect(board).to_have_css("opacity", "0.18")
    line.mend()
    expect(stale).to_be_hidden()
    expect(board).to_have_css("opacity", "1")


def test_it_says_that_it_is_signed_out(just_signed_in: Page, complaints: Complaints) -> None:
    complaints.allow("_f/live/.*401")  # it asks whether the browser has a new session
    page = just_signed_in
    page.goto("/tv/")
    live(page)
    other = page.context.new_page()
    other.goto("/")
    other.get_by_role("button", name="Sign out").click()
    expect(page.locator("#tv-stale")).to_contain_text("Signed out")
    expect(page.locator("#tv-sign-in")).to_be_visible()


@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080), (3840, 2160)])
def test_all_of_it_is_seen_without_scrolling(signed_in: Page, size: tuple[int, int]) -> None:
    page = signed_in
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto("/tv/")
    live(page)
    assert page.evaluate(FITS)
    for tile in page.locator(".tv-tiles > div").all():
        expect(tile).to_be_in_viewport(ratio=1)
