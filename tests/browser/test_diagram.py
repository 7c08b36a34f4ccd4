"""The drawing of a handler and its code lead to each other and to the steps: by keys, and without a script."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.test_journey import NewTab, live, start_order, status, terminate
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]


def test_a_part_of_the_drawing_leads_to_its_line_and_its_step_by_keys(signed_in: Page) -> None:
    page = signed_in
    start_order(page)
    status(page, "waiting")
    page.goto(f"{page.url.split('#')[0]}?tab=code")
    live(page)
    node = page.locator(".node.s-waiting")
    expect(node.locator("title")).to_have_text(re.compile(r"approval: waiting$"))
    node.focus()
    page.keyboard.press("Enter")
    line = page.locator(".code > li.chosen:has(.fact)")
    expect(line.locator("a.n")).to_be_focused()
    expect(page).to_have_url(re.compile(r"#L\d+$"))
    expect(page.locator("#strip")).to_contain_text("Open step")
    page.keyboard.press("Enter")
    expect(node).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(line.locator(".fact a").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#pane-title")).to_have_text("approval")
    terminate(page, "only a test")


def test_the_drawing_follows_the_instance_and_keeps_what_is_chosen(signed_in: Page, new_tab: NewTab) -> None:
    page, other = signed_in, new_tab()
    start_order(page)
    status(page, "waiting")
    other.goto(page.url)
    live(other)
    page.goto(f"{page.url.split('#')[0]}?tab=code")
    live(page)
    node = page.locator(".node.s-waiting")
    name = node.get_attribute("id")
    node.press("Enter")
    terminate(other, "only a test")
    chosen = page.locator(f"#{name}")
    expect(chosen).to_have_class(re.compile(r"\bs-cancelled\b"))
    expect(chosen).to_have_class(re.compile(r"\bchosen\b"))
    expect(page.locator("#strip")).to_contain_text("cancelled")


def test_without_a_script_parts_lines_and_steps_are_links(
    browser: Browser, session: StorageState, live_stack: LiveStack, signed_in: Page
) -> None:
    start_order(signed_in)
    status(signed_in, "waiting")
    plain = browser.new_context(java_script_enabled=False, storage_state=session, base_url=live_stack.url)
    try:
        page = plain.new_page()
        page.goto(f"{signed_in.url.split('#')[0]}?tab=code")
        page.locator(".node.s-waiting").click()
        target = page.locator(".code > li:target")
        expect(target).to_have_count(1)
        target.locator(".fact a").first.click()
        expect(page.locator("#pane-title")).to_have_text("approval")
    finally:
        plain.close()
    terminate(signed_in, "only a test")
