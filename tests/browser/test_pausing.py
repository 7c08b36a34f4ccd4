"""Pausing a workflow on a real cluster: an instance that is started then is held, and ends once it is resumed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_journey import live, status
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

END = """
from engine import pauses
pauses.resume("tick")
"""
START = """
from tests.sample.workflows import tick
tick.start(id="held-by-a-pause")
"""


@pytest.fixture
def resumed(live_stack: LiveStack) -> Iterator[None]:
    yield
    live_stack.django(END)


@pytest.mark.usefixtures("resumed")
def test_a_paused_workflow_holds_what_is_started_until_it_is_resumed(
    signed_in: Page, live_stack: LiveStack
) -> None:
    page = signed_in
    page.goto("/workflows/tick/")
    live(page)
    page.get_by_role("link", name="Pause…").click()
    expect(page.locator("main")).to_contain_text("Does not pause children that belong to other workflows.")
    page.get_by_label("Reason").fill("provider down")
    page.keyboard.press("Enter")
    page.wait_for_url("**/workflows/tick/")
    expect(page.locator("#flash")).to_contain_text("Paused tick.")
    banner = page.locator("#workflow-pause")
    expect(banner).to_contain_text(re.compile(r"Paused by admin\s+since\s.*:\s+“provider down”\."))
    expect(page.get_by_role("link", name="Pause…")).to_have_count(0)

    # The banner and the list hear of what is held, without a reload.
    live(page)
    live_stack.django(START)
    expect(banner).to_contain_text("1 instance is held.")
    page.goto("/workflows/tick/instances/held-by-a-pause/")
    live(page)
    status(page, "queued")
    expect(page.locator("main")).to_contain_text("is paused by admin since")
    page.goto("/workflows/")
    expect(page.locator("#w-tick .chip")).to_have_text("paused")

    # All, or only the oldest few: the number is asked for only then.
    page.goto("/workflows/tick/")
    page.get_by_role("link", name="Resume…").click()
    number = page.get_by_label("How many of the oldest")
    expect(number).to_be_hidden()
    page.get_by_label("Only the oldest").check()
    number.fill("1")
    page.get_by_role("button", name="Resume").click()
    page.wait_for_url("**/workflows/tick/")
    expect(page.locator("#flash")).to_contain_text("Released 1 of tick; 0 are still held.")
    page.goto("/workflows/tick/instances/held-by-a-pause/")
    status(page, "complete")

    page.goto("/workflows/tick/")
    page.get_by_role("link", name="Resume…").click()
    page.get_by_role("button", name="Resume").click()
    page.wait_for_url("**/workflows/tick/")
    expect(banner).to_be_hidden()
    expect(page.get_by_role("link", name="Pause…")).to_be_visible()


@pytest.mark.usefixtures("resumed")
def test_open_pages_follow_what_others_do(signed_in: Page, live_stack: LiveStack) -> None:
    page = signed_in
    for address, mark in (("/workflows/tick/", "#workflow-pause.note"), ("/workflows/", "#w-tick .chip")):
        page.goto(address)
        live(page)
        expect(page.locator(mark)).to_have_count(0)
        live_stack.django('from engine import pauses; pauses.pause("tick", by="zoe", reason="down")')
        expect(page.locator(mark)).to_have_count(1)
        live_stack.django(END)
        expect(page.locator(mark)).to_have_count(0)


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("action", ["pause", "resume"])
@pytest.mark.usefixtures("resumed")
def test_the_pages_fit(signed_in: Page, live_stack: LiveStack, action: str, width: int) -> None:
    page = signed_in
    page.set_viewport_size({"width": width, "height": 900})
    live_stack.django('from engine import pauses; pauses.pause("tick", by="zoe", reason="down " * 60)')
    page.goto(f"/{action}-workflows/?workflow=tick&workflow=process-order")
    expect(page.locator("h1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
