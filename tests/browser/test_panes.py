"""The rows of an instance and their panes, with the mouse, with the keyboard, and without a script."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.test_journey import live, start_order, status, terminate
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]


def test_a_row_is_opened_by_keys_and_its_address_opens_it_again(signed_in: Page) -> None:
    page = signed_in
    start_order(page)
    status(page, "waiting")
    page.reload()
    live(page)
    title = page.locator("#pane-title")
    expect(title).to_have_text("approval")  # it waits
    page.keyboard.press("k")
    expect(title).to_have_text("reserve")
    expect(page).to_have_url(re.compile(r"/#s-reserve-1$"))
    expect(page.locator("#s-1 a.open")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#pane")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#s-1 a.open")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#pane")).to_have_count(0)
    page.goto(f"{page.url.split('#')[0]}#s-reserve-1-a1")
    expect(page.locator("#s-1-a1")).to_be_visible()
    expect(title).to_have_text("reserve")
    terminate(page, "only a test")


def test_without_a_script_a_row_is_a_link(
    browser: Browser, session: StorageState, live_stack: LiveStack, signed_in: Page
) -> None:
    start_order(signed_in)
    status(signed_in, "waiting")
    plain = browser.new_context(java_script_enabled=False, storage_state=session, base_url=live_stack.url)
    try:
        page = plain.new_page()
        page.goto(signed_in.url.split("#")[0])
        page.locator("#s-1 a.open").click()
        expect(page.locator("#s-1-a1")).to_be_visible()
        page.locator("#pane .close").click()
        expect(page.locator("#pane")).to_have_count(0)
    finally:
        plain.close()
    terminate(signed_in, "only a test")
