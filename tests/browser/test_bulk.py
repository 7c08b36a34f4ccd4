"""Many instances at once in a browser: ticked, chosen in the dialog, watched; by keys, on a phone, without a script."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Locator, Page, StorageState, expect

from tests.browser.test_calm import COUNT_SHIFTS, LARGEST_SHIFT, shift
from tests.browser.test_errors import open_error
from tests.browser.test_journey import live
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

JOB = re.compile(r"/bulk/[0-9a-f-]{36}/")
MADE = """
from tests.sample.workflows import stumble
stumble.start_many([{{"id": f"{run}-{{n}}", "params": {{"attempts": 1}}}} for n in range({count})])
"""

Made = Callable[[str, int], str]


@pytest.fixture
def made(live_stack: LiveStack) -> Made:
    """Let some instances fail, and return the address of the list of these."""

    def make(run: str, count: int) -> str:
        live_stack.django(MADE.format(run=run, count=count))
        return f"/instances/?query=id:{run}%20status:errored"

    return make


def open_list(page: Page, where: str, count: int) -> Locator:
    """Open a list once it has so many rows, and return their boxes."""
    page.goto(where)
    boxes = page.locator("#list input[name=key]")
    for _ in range(60):
        if boxes.count() == count:
            break
        page.wait_for_timeout(500)
        page.reload()
    live(page)
    expect(boxes).to_have_count(count)
    return boxes


def said(page: Page, text: str) -> None:
    expect(page.locator("#ticks .number")).to_have_text(text)


def retry(page: Page, reason: str = "the stone is gone") -> None:
    sheet = page.locator("#sheet")
    sheet.get_by_label("Reason").fill(reason)
    sheet.get_by_role("button", name=re.compile(r"Retry \d")).click()
    page.wait_for_url(JOB)


def test_ticked_ones_are_retried_and_watched_to_their_end(signed_in: Page, made: Made) -> None:
    page = signed_in
    where = made("bulk-a", 6)
    boxes = open_list(page, where, 6)
    bar = page.locator("#ticks")
    expect(bar).to_be_hidden()
    boxes.nth(1).click()
    boxes.nth(4).click(modifiers=["Shift"])
    said(page, "4 selected")
    boxes.nth(2).click()
    said(page, "3 selected")
    page.reload()  # ticks are of the search, not of the page
    said(page, "3 selected")
    expect(page.locator("#list tr.ticked")).to_have_count(3)

    page.get_by_role("button", name="Retry…").click()
    sheet = page.locator("#sheet")
    expect(sheet).to_contain_text("Retry 3 instances")
    expect(sheet).to_contain_text("3 will be retried")
    expect(page.locator("#sheet-title")).to_be_focused()
    sheet.get_by_role("button", name="Retry 3").click()
    expect(sheet).to_be_visible()  # without a reason
    retry(page)
    live(page)
    expect(page.locator("#bulk-head .chip")).to_have_text("complete")
    expect(page.locator("#bulk-meter")).to_contain_text("of 3")
    expect(page.locator("#bulk-items .outcome .done")).to_have_count(3)
    expect(page.locator("#bulk-items td.now .chip.s-errored")).to_have_count(3)  # they stumble again
    page.goto("/bulk/")
    expect(page.locator("#jobs tbody tr").first).to_contain_text("the stone is gone")

    page.goto(where)
    expect(bar).to_be_hidden()


def test_all_that_match_by_keys_with_text_that_survives_esc(signed_in: Page, made: Made) -> None:
    page = signed_in
    open_list(page, made("bulk-b", 4), 4)
    for key in ("j", "x", "j", "j", "Shift+X"):
        page.keyboard.press(key)
    said(page, "3 selected")
    page.keyboard.press("Escape")
    expect(page.locator("#ticks")).to_be_hidden()
    for key in ("g", "a"):  # to the approvals, and not all
        page.keyboard.press(key)
    page.wait_for_url("**/approvals/")
    page.go_back()
    live(page)
    expect(page.locator("#ticks")).to_be_hidden()
    page.keyboard.press("a")
    said(page, "All 4 that match")
    page.keyboard.press("y")
    sheet = page.locator("#sheet")
    expect(sheet).to_contain_text("id:bulk-b status:errored")
    sheet.get_by_label("Reason").fill("not yet")
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    said(page, "All 4 that match")
    page.keyboard.press("y")
    expect(sheet.get_by_label("Reason")).to_have_value("not yet")
    retry(page, "now")
    live(page)
    expect(page.locator("#bulk-about")).to_contain_text("now")
    expect(page.locator("#bulk-head .chip")).to_have_text("complete")


def test_a_row_that_changes_stays_where_it_is_and_ticked(signed_in: Page, live_stack: LiveStack) -> None:
    page = signed_in
    page.add_init_script(COUNT_SHIFTS)
    live_stack.django("""
from tests.sample.workflows import stumble
stumble.start_many([{"id": f"bulk-c-{n}", "params": {"attempts": 9, "delay": 3600}} for n in range(3)])
""")
    boxes = open_list(page, "/instances/?query=id:bulk-c%20status:retrying", 3)
    boxes.nth(1).click()
    order = page.locator("#list td.id").all_inner_texts()
    live_stack.django(f"""
from engine.models import Instance
Instance.objects.get(id={order[1].strip()!r}).terminate()
""")
    row = page.locator("#list tbody tr").nth(1)
    expect(row.locator("td .chip")).to_have_text("terminated")
    assert page.locator("#list td.id").all_inner_texts() == order
    said(page, "1 selected")
    expect(boxes.nth(1)).to_be_checked()
    assert shift(page) <= LARGEST_SHIFT


def test_it_works_by_touch_on_a_phone(
    browser: Browser, session: StorageState, live_stack: LiveStack, made: Made
) -> None:
    where = made("bulk-d", 3)
    context = browser.new_context(
        base_url=live_stack.url,
        storage_state=session,
        viewport={"width": 390, "height": 844},
        has_touch=True,
        color_scheme="dark",
    )
    try:
        page = context.new_page()
        boxes = open_list(page, where, 3)
        box = boxes.first.locator("xpath=..").bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 40
        boxes.first.tap()
        page.locator("#list .pick label").nth(2).tap()
        said(page, "2 selected")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("button", name="Retry…").tap()
        sheet = page.locator("#sheet")
        expect(sheet).to_contain_text("2 will be retried")
        assert page.evaluate("document.querySelector('#sheet').scrollWidth <= innerWidth")
        retry(page)
        for address in (page.url, "/bulk/"):
            page.goto(address)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
    finally:
        context.close()


def test_it_needs_no_javascript(
    browser: Browser, session: StorageState, live_stack: LiveStack, signed_in: Page, made: Made
) -> None:
    where = made("bulk-e", 3)
    open_list(signed_in, where, 3)
    context = browser.new_context(base_url=live_stack.url, java_script_enabled=False, storage_state=session)
    try:
        page = context.new_page()
        page.goto(where)
        boxes = page.locator("#list input[name=key]")
        boxes.nth(0).check()
        boxes.nth(2).check()
        page.get_by_role("button", name="Retry…").click()
        expect(page.locator("main")).to_contain_text("2 will be retried")
        page.get_by_label("Reason").fill("plain")
        page.get_by_role("button", name="Retry 2").click()
        page.wait_for_url(JOB)
        expect(page.locator("#bulk-about")).to_contain_text("2 that were chosen one by one")
        page.goto(where)
        page.get_by_label("All that match").check()
        page.get_by_role("button", name="Terminate…").click()
        expect(page.locator("main")).to_contain_text("It applies to none of them.")
    finally:
        context.close()


def test_an_error_is_retried_from_its_page_and_a_job_is_aborted(
    signed_in: Page, live_stack: LiveStack
) -> None:
    page = signed_in
    open_error(page)
    opener = page.get_by_role("link", name=re.compile(r"Retry (all )?\d+…"))
    opener.click()
    sheet = page.locator("#sheet")
    expect(sheet).to_contain_text("will be retried")
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    expect(opener).to_be_focused()

    live_stack.django("""
from engine import bulk
from engine.models import Instance
from django.db import transaction
rows = Instance.objects.filter(workflow="stumble", status="errored")[:2]
with transaction.atomic():
    bulk.pause(bulk.start("retry", instances=rows, by="ana", reason="to be aborted").id, by="ana")
""")
    page.goto("/bulk/")
    page.locator("#jobs tbody tr").first.get_by_role("link", name=re.compile(r"Retry \d instance")).click()
    live(page)
    expect(page.locator("#bulk-head .chip")).to_have_text("paused")
    page.get_by_role("button", name="Abort…").click()
    dialog = page.locator("dialog#abort")
    dialog.get_by_label("Reason").fill("by mistake")
    dialog.get_by_role("button", name="Abort").click()
    expect(page.locator("#bulk-head .chip")).to_have_text("aborted")
    expect(page.locator("#bulk-trail")).to_contain_text("by mistake")
    expect(page.get_by_role("button", name="Resume")).to_have_count(0)
