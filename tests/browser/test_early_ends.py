"""Retry now and Wake now, as people press them; another tab sees it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.conftest import Complaints
from tests.browser.test_journey import NewTab, choose, live, status
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]


def start(page: Page, workflow: str, params: str) -> None:
    cookies = {one["name"]: one["value"] for one in page.context.cookies()}
    form = {"params": params, "csrfmiddlewaretoken": cookies["reprise-csrf"]}
    page.goto(page.request.post(f"/workflows/{workflow}/start/", form=form).url)
    page.wait_for_url("**/instances/**")
    live(page)


def test_retry_now_starts_the_next_attempt(signed_in: Page, new_tab: NewTab, complaints: Complaints) -> None:
    page = signed_in
    start(page, "stumble", '{"attempts": 2, "delay": 3600}')
    status(page, "retrying")
    expect(page.locator("#why")).to_contain_text("attempt 2 of 2")
    other = new_tab()
    other.goto(page.url)
    live(other)

    button = page.get_by_role("button", name="Retry now…")
    expect(button).to_have_class("button primary needs-js")
    button.click()
    dialog = page.get_by_role("dialog", name="Retry")
    expect(dialog).to_contain_text("the same idempotency key as the attempts before it")
    dialog.get_by_role("textbox", name="Reason").fill("it is up again")
    dialog.get_by_role("button", name="Retry now").click()
    expect(page.locator("#flash")).to_contain_text("Retrying ")

    status(page, "errored")
    status(other, "errored")
    expect(other.locator("#notes")).to_contain_text("retried “stumble” early")
    expect(other.locator("#notes")).to_contain_text("it is up again")
    expect(other.get_by_role("button", name="Retry now…")).to_have_count(0)


def test_wake_now_ends_a_sleep(signed_in: Page) -> None:
    page = signed_in
    start(page, "nap", '{"seconds": 3600}')
    status(page, "sleeping")
    choose(page, "Wake now…")
    page.get_by_role("dialog", name="Wake").get_by_role("button", name="Wake now").click()
    expect(page.locator("#flash")).to_contain_text("Woke ")
    status(page, "complete")
    expect(page.locator("#notes")).to_contain_text("woke “nap” early")


def test_without_javascript_the_form_is_on_the_page(
    browser: Browser, session: StorageState, live_stack: LiveStack, signed_in: Page
) -> None:
    start(signed_in, "nap", '{"seconds": 3600}')
    status(signed_in, "sleeping")
    context = browser.new_context(base_url=live_stack.url, storage_state=session, java_script_enabled=False)
    page = context.new_page()
    page.goto(signed_in.url)
    page.get_by_role("button", name="Wake now").click()
    expect(page.locator("#flash")).to_contain_text("Woke ")
    status(signed_in, "complete")
    context.close()
