"""Get about by keys, and take a page along on paper."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_journey import live
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

THREE = """
from tests.sample.workflows import gate
for number in range(3):
    gate.start({"message": "Walk on"}, id=f"walk_{number}", tags=["walk"])
"""
END = """
from engine.models import Instance
for one in Instance.objects.filter(id__startswith="walk_"):
    one.terminate(reason="only a test")
    one.delete()
"""


@pytest.fixture
def three(live_stack: LiveStack) -> Iterator[None]:
    live_stack.django(THREE)
    yield
    live_stack.django(END)


@pytest.mark.usefixtures("three")
def test_brackets_lead_through_the_list_that_an_instance_was_opened_from(signed_in: Page) -> None:
    page = signed_in
    page.goto("/instances/?query=tag:walk")
    live(page)
    links = page.locator("#list td.id a")
    expect(links).to_have_count(3)
    paths = [urlsplit(str(link.get_attribute("href"))).path for link in links.all()]
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{paths[1]}")
    page.keyboard.press("]")
    page.wait_for_url(f"**{paths[2]}")
    page.keyboard.press("]")
    expect(page.locator("#flash")).to_contain_text("This is the last instance of the list.")
    page.goto(f"{paths[2]}?tab=activity")
    page.keyboard.press("[")
    page.wait_for_url(f"**{paths[1]}?tab=activity")
    page.keyboard.press("[")
    page.wait_for_url(f"**{paths[0]}?tab=activity")
    page.evaluate("sessionStorage.clear()")
    page.keyboard.press("]")
    expect(page.locator("#flash")).to_contain_text("Open an instance from a list")


def test_the_list_of_keys_opens_over_the_page(signed_in: Page) -> None:
    page = signed_in
    page.goto("/instances/")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_have_count(1)
    page.get_by_role("button", name="Close").click()
    page.get_by_role("link", name="Shortcuts").click()
    expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()


@pytest.mark.usefixtures("three")
def test_on_paper_a_page_has_no_buttons_and_says_when(signed_in: Page) -> None:
    page = signed_in
    page.goto("/instances/?query=tag:walk")
    live(page)
    when = page.locator("#list time[data-kind=ago]").first
    expect(when).to_contain_text("ago")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(when.inner_text()) == len("2026-11-28 01:20:00")
    expect(page.locator(".rail")).to_be_hidden()
    expect(page.get_by_role("button")).to_have_count(0)
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(when).to_contain_text("ago")
