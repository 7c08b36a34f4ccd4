"""Ctrl K: find a page, a workflow, an instance or an action of the page, and go there."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_every_page import AXE, seen_by_axe
from tests.browser.test_journey import live, start_order, status

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]


def found(page: Page, title: str) -> list[str]:
    section = page.locator("#jump section").filter(has=page.get_by_role("heading", name=title, exact=True))
    return [" ".join(text.split()) for text in section.locator("a").all_inner_texts()]


def test_the_keyboard_alone_goes_to_a_workflow_and_steers_an_instance(signed_in: Page) -> None:
    page = signed_in
    page.goto("/")
    live(page)
    page.keyboard.press("Control+k")
    expect(page.locator("#jump input")).to_be_focused()
    expect(page.locator("#jump .jump-found a").first).to_be_visible()
    page.keyboard.type("process-or")
    page.keyboard.press("Enter")  # before the answer has come
    page.wait_for_url("**/workflows/process-order/")

    start_order(page)
    status(page, "waiting")
    page.keyboard.press("Control+k")
    expect(page.locator("#jump h2").first).to_have_text("On this page")
    page.keyboard.type("termin")
    expect(page.locator("#jump .jump-found a[data-first]")).to_have_text(re.compile("Terminate"))
    assert len(found(page, "On this page")) == 1
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#jump input")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#jump")).to_be_hidden()
    dialog = page.locator("dialog[open]")
    expect(dialog.get_by_role("button", name="Terminate")).to_be_visible()
    page.keyboard.press("Control+k")  # what is asked comes first
    expect(page.locator("#jump")).to_be_hidden()
    dialog.locator("textarea, input[name=reason]").first.fill("only a test")
    dialog.get_by_role("button", name="Terminate").click()
    status(page, "terminated")


def test_escape_closes_it_and_the_focus_is_where_it_was(signed_in: Page) -> None:
    page = signed_in
    page.goto("/instances/")
    live(page)
    page.locator("input[type=search]").first.focus()
    page.keyboard.press("Control+k")
    expect(page.locator("#jump .jump-found a").first).to_be_visible()
    page.evaluate(AXE.read_text())
    assert seen_by_axe(page, "jump") == set()
    page.keyboard.type("xyz")
    page.keyboard.press("Escape")
    expect(page.locator("#jump")).to_be_hidden()
    expect(page.locator("input[type=search]").first).to_be_focused()
    page.get_by_role("link", name="Jump to…").click()
    expect(page.locator("#jump input")).to_have_value("")


def test_the_open_tab_is_in_sight_on_a_phone(signed_in: Page) -> None:
    page = signed_in
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/workflows/process-order/?tab=settings")
    expect(page.locator(".tabs a[aria-current]")).to_be_in_viewport(ratio=0.9)
