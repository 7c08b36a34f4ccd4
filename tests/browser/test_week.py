"""The week of schedules in a browser: what runs appears in its hour, and nothing moves."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_calm import COUNT_SHIFTS, shift
from tests.browser.test_journey import live
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

BEGIN = """
from engine.models import ScheduleRow
ScheduleRow.objects.create(workflow="tick", name="weekly", expression="0 0 1 1 *", timezone="UTC")
"""
RUN = """
from engine import schedules
from engine.models import ScheduleRow
print(schedules.run_now(ScheduleRow.objects.get(name="weekly"), by="ana").get_absolute_url())
"""
END = """
from engine.models import ScheduleRow
ScheduleRow.objects.filter(name="weekly").delete()
"""


@pytest.fixture
def weekly(live_stack: LiveStack) -> Iterator[None]:
    live_stack.django(BEGIN)
    yield
    live_stack.django(END)


@pytest.mark.usefixtures("weekly")
def test_a_run_appears_in_its_hour_and_leads_to_its_instance(signed_in: Page, live_stack: LiveStack) -> None:
    page = signed_in
    page.add_init_script(COUNT_SHIFTS)
    page.goto("/schedules/")
    page.get_by_role("link", name="Week").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".week .now > span")).to_be_visible()
    live(page)
    where = live_stack.django(RUN).strip()
    block = page.locator(f".block[href='{where}']")
    expect(block).to_contain_text("complete")
    expect(block).to_have_accessible_name(re.compile(r"^\w+day\s+\d\d:\d\d\s+complete\s+tick · weekly$"))
    assert shift(page) == 0.0
    block.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{where}")
