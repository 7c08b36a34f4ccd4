"""The pages of errors in a browser: live, with decisions, by keys, on a phone, without JavaScript, and calm."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.test_calm import COUNT_SHIFTS, LARGEST_SHIFT, shift
from tests.browser.test_journey import live
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

LIST = "/errors/?workflow=stumble"
ROW = "#errors-list tr[id^=e-]"


def stumble(page: Page, times: int = 1) -> None:
    """Start what fails, by what its form sends."""
    cookies = {one["name"]: one["value"] for one in page.context.cookies()}
    form = {"params": '{"attempts": 1}', "csrfmiddlewaretoken": cookies["reprise-csrf"]}
    for _ in range(times):
        assert page.request.post("/workflows/stumble/start/", form=form).ok


def errored(page: Page) -> int:
    return int(page.locator("#error-figures b").first.inner_text().replace(",", ""))


def open_error(page: Page) -> None:
    """Open the page of the error of `stumble`, which is open and fails again."""
    page.goto(LIST)
    stumble(page)
    page.locator(ROW).get_by_role("link", name="stumble: There is a stone").click()
    page.wait_for_url(re.compile(r"/errors/[0-9a-f]{16}/"))
    live(page)


def state(page: Page, word: str) -> None:
    expect(page.locator("#error-head .chip")).to_have_text(word)


def test_what_fails_shows_up_live_and_opens_again_after_it_was_resolved(signed_in: Page) -> None:
    page = signed_in
    page.goto(LIST)
    live(page)
    stumble(page)
    row = page.locator(ROW)
    expect(row).to_contain_text("There is a stone in the way.")
    expect(page.locator("#errors-count")).to_be_visible()
    number = row.locator(".num-cell").first
    before = int(number.inner_text())
    stumble(page)
    expect(number).not_to_have_text(str(before), use_inner_text=True)
    assert int(number.inner_text()) > before  # perhaps by more: the one before may have failed just now
    row.get_by_role("link", name="stumble: There is a stone").click()
    live(page)
    state(page, "open")
    expect(page.locator("#error-going")).to_contain_text("Still failing: last")
    page.get_by_role("button", name="Resolve").click()
    expect(page.locator("#flash")).to_contain_text("Resolved.")
    state(page, "resolved")
    expect(page.locator("#error-state")).to_contain_text("Resolved by admin")
    live(page)
    stumble(page)
    state(page, "open")
    expect(page.get_by_role("button", name="Ignore…")).to_be_visible()


def test_it_is_ignored_with_a_reason_and_reopened(signed_in: Page) -> None:
    page = signed_in
    open_error(page)
    page.get_by_role("button", name="Ignore…").click()
    dialog = page.locator("dialog#ignore")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Ignore").click()
    expect(dialog).to_be_visible()  # without a reason
    dialog.get_by_label("Ignore it").select_option("for a day")
    dialog.get_by_label("Reason").fill("The stone is known.")
    dialog.get_by_role("button", name="Ignore").click()
    state(page, "ignored")
    expect(page.locator("#error-state")).to_contain_text("“The stone is known.”")
    page.goto("/errors/?state=ignored&workflow=stumble")
    expect(page.locator(ROW)).to_contain_text("Ignored by admin")
    page.locator(ROW).get_by_role("link", name="stumble: There is a stone").click()
    page.get_by_role("button", name="Reopen").click()
    state(page, "open")


def test_keys_lead_to_the_errors_and_to_one(signed_in: Page) -> None:
    page = signed_in
    open_error(page)
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("e")
    page.wait_for_url("**/errors/")
    expect(page.locator("nav [aria-current=page]").first).to_contain_text("Errors")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/errors/[0-9a-f]{16}/"))


def test_they_fit_a_phone_whose_bar_leads_there(signed_in: Page) -> None:
    page = signed_in
    open_error(page)
    error = page.url
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for width in (390, 1440):
            page.set_viewport_size({"width": width, "height": 844})
            for where in (
                LIST,
                "/errors/?state=resolved",
                error,
                f"{error}?span=hour",
                f"{error}?kind=went_on",
            ):
                page.goto(where)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (where, width)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/")
    page.locator(".rail > nav").get_by_role("link", name="Errors").click()
    page.wait_for_url("**/errors/")
    page.get_by_role("button", name="More").click()
    page.locator("#rail-more").get_by_role("link", name="Workflows").click()
    page.wait_for_url("**/workflows/")


@pytest.mark.parametrize("width", [390, 1440])
def test_its_page_does_not_jump_while_more_fails(signed_in: Page, width: int) -> None:
    page = signed_in
    page.set_viewport_size({"width": width, "height": 900})
    open_error(page)
    page.add_init_script(COUNT_SHIFTS)
    page.reload()
    live(page)
    before = errored(page)
    stumble(page, 2)
    expect(page.locator("#error-figures b").first).to_have_text(str(before + 2))
    assert shift(page) <= LARGEST_SHIFT


def test_decisions_need_no_javascript(
    signed_in: Page, browser: Browser, session: StorageState, live_stack: LiveStack
) -> None:
    open_error(signed_in)
    context = browser.new_context(base_url=live_stack.url, java_script_enabled=False, storage_state=session)
    try:
        page = context.new_page()
        page.goto(signed_in.url)
        page.get_by_role("button", name="Resolve").click()
        state(page, "resolved")
        page.get_by_role("button", name="Reopen").click()
        state(page, "open")
        page.locator("#plain-ignore-reason").fill("known")
        page.locator("#plain-ignore-form").get_by_role("button", name="Ignore").click()
        state(page, "ignored")
        page.get_by_role("button", name="Reopen").click()
        state(page, "open")
    finally:
        context.close()
