"""The page of workers on a real cluster: it shows what runs in a slot, and a worker is drained by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Locator, Page, StorageState, expect

from tests.browser.test_calm import COUNT_SHIFTS
from tests.browser.test_journey import live
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

START = """
from tests.sample.workflows import snooze
snooze.start({"seconds": 600}, id="in-a-slot")
"""
END = """
from engine.models import Instance
Instance.objects.get(id="in-a-slot").terminate(reason="only a test").delete()
"""
STEADY = 0.001  # a chip whose word changes moves by less than a pixel row


@pytest.fixture
def dozing(live_stack: LiveStack) -> Iterator[None]:
    live_stack.django(START)
    yield
    live_stack.django(END)


def rows(page: Page) -> Locator:
    return page.locator("#workers-table tr[id]")


@pytest.mark.usefixtures("dozing")
def test_a_real_cluster_shows_its_workers_and_is_drained_by_keyboard(signed_in: Page) -> None:
    page = signed_in
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("k")
    page.wait_for_url("**/workers/")
    live(page)
    expect(rows(page)).to_have_count(2)
    expect(page.locator("h1")).to_have_text(re.compile(r"All 2 workers are up; 1 of \d+ slots is busy\."))
    busy = rows(page).filter(has=page.get_by_role("link", name="in-a-slot"))
    expect(busy).to_contain_text(re.compile(r"1 of \d+"))
    expect(busy.locator(".code code")).to_have_text(re.compile(r"[0-9a-f]{7}"))
    expect(page.locator("#queue-snooze")).to_contain_text("keeps up")
    worker = page.locator(f"#{busy.get_attribute('id')}")

    # The page asks first and says what it does; Enter in the field sends it.
    worker.get_by_role("link", name=re.compile("Drain…")).focus()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("Does not cancel a step or use up an attempt.")
    page.get_by_label("Reason").focus()
    page.keyboard.type("a new kernel")
    page.keyboard.press("Enter")
    page.wait_for_url("**/workers/")
    expect(page.locator("#flash")).to_contain_text("it finishes what it runs and begins nothing")
    expect(worker.locator(".chip")).to_have_text("draining")
    expect(worker).to_contain_text("drained by admin: a new kernel")
    expect(worker.get_by_role("link", name="in-a-slot")).to_be_visible()

    worker.get_by_role("button", name=re.compile("Resume")).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#flash")).to_contain_text("Resumed")
    expect(worker.locator(".chip")).to_have_text("up")


@pytest.mark.usefixtures("dozing")
@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_moves_while_it_is_watched_and_it_fits(signed_in: Page, width: int) -> None:
    page = signed_in
    page.set_viewport_size({"width": width, "height": 900})
    page.add_init_script(COUNT_SHIFTS)
    page.goto("/workers/")
    live(page)
    expect(page.locator("#workers-figures")).not_to_contain_text("measuring")  # after several heartbeats
    page.wait_for_function("document.querySelectorAll('#workers-table .beat time').length === 2")
    shifts = page.evaluate("window.shifts")
    assert sum(value for value, _ in shifts) <= STEADY, shifts
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_clock_is_that_of_the_reader_and_stays_so(
    browser: Browser, live_stack: LiveStack, session: StorageState
) -> None:
    there = browser.new_context(
        base_url=live_stack.url, storage_state=session, timezone_id="Asia/Kathmandu", locale="en-US"
    )
    with closing(there):
        page = there.new_page()
        page.goto("/workers/")
        live(page)
        clock = page.locator("main .zone")
        expect(clock).to_have_text(re.compile(r"^\d\d:\d\d GMT\+5:45$"))
        minutes = page.evaluate(
            "() => { const [h, m] = document.querySelector('main .zone').textContent.split(/[: ]/);"
            " const now = new Date(); return Math.abs(now.getHours() * 60 + now.getMinutes() - h * 60 - m); }"
        )
        assert minutes <= 1 or minutes == 24 * 60 - 1
        page.evaluate(
            "document.querySelector('main .zone').textContent = 'UTC'"
        )  # as a newly drawn head does
        expect(clock).to_have_text(re.compile(r"GMT\+5:45$"))
