"""The page that decides on a step whose attempts are used up: by keyboard, on a phone, and without JavaScript."""

from __future__ import annotations

import re
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.conftest import Complaints
from tests.browser.test_journey import live, status
from tests.browser.test_search import FITS
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]


def open_exhausted(page: Page) -> None:
    """Start what uses up its attempts, and open its page."""
    page.goto("/workflows/wire/start/")
    page.get_by_role("button", name="Start wire").click()
    page.wait_for_url("**/instances/**")
    status(page, "paused")


def decide(page: Page) -> None:
    page.get_by_role("link", name="Decide about send").first.click()
    page.wait_for_url(re.compile(r"/steps/1/decide/$"))


def test_what_each_choice_does_is_explained_and_a_skip_completes_it(
    signed_in: Page, complaints: Complaints
) -> None:
    complaints.allow("422")  # the refused output
    page = signed_in
    open_exhausted(page)
    expect(page.locator("#why")).to_contain_text("step 1 send used up its 2 attempts")
    decide(page)
    main = page.locator("main")
    expect(main).to_contain_text("The bank does not answer.")
    for text in (
        "Runs the step again with all its attempts",
        "The step is complete with this output",
        "The step fails with its last error",
    ):
        expect(main).to_contain_text(text)

    page.get_by_label("Output (JSON)").focus()
    page.keyboard.type('"by hand')
    page.keyboard.press("Tab")
    page.keyboard.type("paid at the counter")
    page.keyboard.press("Enter")
    expect(main).to_contain_text("Not skipped")
    expect(page.get_by_label("Output (JSON)")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#skip-reason")).to_have_value("paid at the counter")
    page.get_by_label("Output (JSON)").fill('"by hand"')
    page.locator("#skip-reason").press("Enter")
    page.wait_for_url(re.compile(r"/instances/[^/]+/$"))
    status(page, "complete")
    expect(page.locator("#result")).to_contain_text("by hand")
    expect(page.locator("#notes")).to_contain_text("paid at the counter")


def test_a_retry_gives_it_its_attempts_anew(signed_in: Page) -> None:
    page = signed_in
    open_exhausted(page)
    decide(page)
    page.get_by_role("button", name="Retry send").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/instances/[^/]+/$"))
    expect(page.locator("#why")).to_contain_text("step 1 send used up its 2 attempts")
    expect(page.locator("#notes")).to_contain_text("retried")


def test_the_end_of_its_attempts_is_not_drawn_as_a_back_off(signed_in: Page) -> None:
    page = signed_in
    open_exhausted(page)
    live(page)
    page.wait_for_timeout(2500)
    page.reload()
    expect(page.locator("#s-1 .solid")).to_have_count(2)
    expect(page.locator("#s-1 line.held")).to_have_count(1)
    expect(page.locator("#legend")).to_contain_text("waits for a decision")
    x = "(line) => [parseFloat(line.getAttribute('x1')), parseFloat(line.getAttribute('x2'))]"
    for start, end in (line.evaluate(x) for line in page.locator("#s-1 line.backoff").all()):
        assert end - start < 50


def test_it_fits_a_phone(signed_in: Page) -> None:
    page = signed_in
    open_exhausted(page)
    instance = page.url
    decide(page)
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 844})
        for address in (instance, page.url):
            page.goto(address)
            assert page.evaluate(FITS), (address, width)


def test_a_decision_needs_no_javascript(
    signed_in: Page, browser: Browser, session: StorageState, live_stack: LiveStack
) -> None:
    open_exhausted(signed_in)
    context = browser.new_context(base_url=live_stack.url, java_script_enabled=False, storage_state=session)
    with closing(context):
        page = context.new_page()
        page.goto(signed_in.url)
        decide(page)
        page.locator("#fail-reason").fill("The bank is closed.")
        page.get_by_role("button", name="Fail send").click()
        page.wait_for_url(re.compile(r"/instances/[^/]+/$"))
    status(signed_in, "errored")
