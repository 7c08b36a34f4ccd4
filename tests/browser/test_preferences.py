"""The zone and the density that a person chooses are those of every page."""

from __future__ import annotations

import json
import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Complaints, profile, sign_in
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

ZONE = "Asia/Kathmandu"  # UTC+05:45, all year
START = 'import json\nfrom engine import workflows\none = workflows["tick"].start()\n'
FACTS = "print(json.dumps([one.get_absolute_url(), one.created_at.isoformat()]))"
HEIGHT = "(one) => one.getBoundingClientRect().height"


@pytest.fixture
def page(browser: Browser, complaints: Complaints, live_stack: LiveStack) -> Page:  # type: ignore[misc]
    with profile(browser, complaints, base_url=live_stack.url) as context:
        page = context.new_page()
        sign_in(page, live_stack)
        yield page  # type: ignore[misc]


def choose(page: Page, zone: str, density: str) -> None:
    page.goto("/preferences/")
    page.get_by_label("Time zone").select_option(zone)
    page.get_by_label(density).check()
    page.get_by_role("button", name="Save preferences").click()
    expect(page.locator("#flash")).to_contain_text("Saved your preferences.")


def test_times_are_in_the_chosen_zone_and_rows_as_high_as_chosen(page: Page, live_stack: LiveStack) -> None:
    address, began = json.loads(live_stack.django(START + FACTS))
    choose(page, ZONE, "Compact")
    there = datetime.fromisoformat(began).astimezone(ZoneInfo(ZONE))
    page.goto("/instances/?query=workflow:tick")
    row = page.locator("tbody tr", has=page.locator(f'a[href^="{address}"]'))
    title = row.locator("time").first
    expect(title).to_have_attribute("title", re.compile(rf"^{there:%Y-%m-%d %H:%M}:\d\d GMT\+5:45 · .*Z$"))
    assert row.evaluate(HEIGHT) < 34
    choose(page, "UTC", "Comfortable")
    page.goto("/instances/?query=workflow:tick")
    expect(title).to_have_attribute("title", re.compile(r"^\S+ \S+ UTC$"))
    assert row.evaluate(HEIGHT) >= 44


def test_a_start_is_typed_in_the_chosen_zone_also_where_its_clocks_change(page: Page) -> None:
    choose(page, "America/New_York", "Normal")
    page.goto("/workflows/tick/start/")
    moment, zone = page.locator("#at"), page.get_by_label("Start at: zone")
    for typed, offset in {
        "2027-03-14T01:59": "-05:00",
        "2027-03-14T03:00": "-04:00",
        "2027-07-01T12:00": "-04:00",
    }.items():
        moment.fill(typed)
        expect(zone).to_have_value(offset)


def test_charts_and_the_week_follow(page: Page) -> None:
    choose(page, ZONE, "Normal")
    page.goto("/charts/?range=1h")
    expect(page.locator(".zone")).to_have_text(re.compile(r"^\d\d:\d\d GMT\+5:45$"))
    page.locator(".plot").first.focus()
    page.keyboard.press("Home")
    shown = page.locator(".pointed .when").first
    expect(shown).to_have_text(re.compile(r"\d\d:\d\d"))
    began = page.locator(".plot").first.evaluate("(one) => JSON.parse(one.dataset.plot).from")
    assert f"{datetime.fromtimestamp(began, ZoneInfo(ZONE)):%H:%M}" in shown.inner_text()
    page.goto("/schedules/")
    expect(page.get_by_role("link", name="Week")).to_have_attribute(
        "href", re.compile("zone=Asia%2FKathmandu")
    )
