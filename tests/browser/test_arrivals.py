"""Nothing moves on a page while things arrive that it shows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_calm import COUNT_SHIFTS, shift
from tests.browser.test_journey import live
from tests.browser.test_webhooks import create, post
from tests.live import PROJECT, LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

BEGIN = """
from engine.models import ScheduleRow
from tests.sample.workflows import gate
ScheduleRow.objects.create(workflow="tick", name="arrivals", expression="0 0 1 1 *", timezone="UTC")
for number in range(-3, 0):
    gate.start({"message": f"Arrived as number {number}"}, id=f"arrived_{number + 3}")
"""
ARRIVE = """
import time
from contextlib import suppress
from engine import ScheduleNotDeclaredError, schedules
from engine.models import Instance, ScheduleRow
from tests.sample.workflows import gate, nap, stumble, tick
schedule = ScheduleRow.objects.get(name="arrivals")
for number in range(3, 900):
    gate.start({"message": f"Arrived as number {number}"}, id=f"arrived_{number}")
    tick.start(), stumble.start({"attempts": 1}), nap.start({"seconds": 2})
    # Every five minutes workers see that no code declares it.
    ScheduleRow.objects.filter(pk=schedule.pk).update(is_declared=True)
    with suppress(ScheduleNotDeclaredError):
        schedules.run_now(schedule, by="ana")
    Instance.objects.get(id=f"arrived_{number - 3}").terminate(reason="only a test", by="ana")
    time.sleep(0.3)
"""
END = """
from engine.models import Instance, ScheduleRow
for one in Instance.objects.filter(id__startswith="arrived_"):
    one.is_finished or one.terminate(reason="only a test")
    one.delete()
ScheduleRow.objects.filter(name="arrivals").delete()
"""
# What each page has to draw anew twice before it is judged. The text of times changes by itself.
DRAWN = """
(selector) => {
  const now = [...document.querySelectorAll(selector)].map((one) => one.innerHTML).join();
  window.drawn ??= new Set();
  return window.drawn.add(now).size > 2;
}
"""
PAGES = {
    "/workflows/": "#workflow-table .num",
    "/workers/": "#workers-table .slots, #workers-figures .value, #workers-queues .num-cell",
    "/approvals/?box=open": "#news, #boxes, .inbox-list > .gone .title",
    "/schedules/": "#schedules .last a",
    "/audit/": "#more, #news",
}


@pytest.fixture
def arriving(live_stack: LiveStack) -> Iterator[None]:
    live_stack.django(BEGIN)
    with arrivals(live_stack):
        yield
    live_stack.django(END)


@contextmanager
def arrivals(stack: LiveStack) -> Iterator[None]:
    command = (sys.executable, "manage.py", "shell", "--no-imports", "-c", ARRIVE)
    with subprocess.Popen(command, cwd=PROJECT, env=stack.variables) as running:
        try:
            yield
        finally:
            running.terminate()


@pytest.mark.usefixtures("arriving")
def test_lists_stay_in_place_while_what_they_show_arrives_and_leaves(signed_in: Page) -> None:
    page = signed_in
    address, secret = create(page, "arrivals")
    hook = page.url
    post(address, secret, "first")
    page.add_init_script(COUNT_SHIFTS)
    page.goto(hook)
    live(page)
    post(address, secret, "second")
    expect(page.get_by_role("button", name="1 new · show")).to_be_visible()
    moved = {hook: shift(page)}
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        for where, shows in PAGES.items():
            page.goto(where)
            live(page)
            page.wait_for_function(DRAWN, arg=shows)
            moved[f"{where} at {width}"] = shift(page)
    assert moved == dict.fromkeys(moved, 0.0)
