"""The page stays in place while things happen, and what a user types stays whatever happens."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Complaints
from tests.browser.test_journey import choose, live, start_order, status, terminate, type_json
from tests.browser.test_requests import ask, fill
from tests.live import LiveStack
from tests.processes import marked

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

NewTab = Callable[[], Page]

COUNT_SHIFTS = """
    window.shifts = [];
    new PerformanceObserver((list) => {
      for (const one of list.getEntries()) if (!one.hadRecentInput)
        window.shifts.push([one.value, one.sources.map(({ node, previousRect: was, currentRect: is }) => [
          node?.id || node?.className || node?.nodeName, node?.textContent.trim().slice(0, 40),
          [was.x, was.y, was.width, was.height].join(), [is.x, is.y, is.width, is.height].join()])]);
    }).observe({ type: "layout-shift", buffered: true });
"""
LARGEST_SHIFT = 0.00


def shift(page: Page) -> float:
    """Return by how much the page has moved so far, to two digits as browsers report it."""
    shifts = page.evaluate("window.shifts")
    total = round(sum(value for value, _ in shifts), 2)
    if total > LARGEST_SHIFT:
        print(shifts)
    return total


@contextmanager
def hung(stack: LiveStack) -> Iterator[None]:
    """Suspend the web server: its sockets stay open, and nothing answers."""
    servers = [pid for pid, command in marked(stack.run).items() if "daphne" in command]
    assert servers
    for pid in servers:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in servers:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("width", [390, 1440])
def test_the_page_does_not_jump_while_an_instance_fails_four_times(
    signed_in: Page, live_stack: LiveStack, width: int
) -> None:
    page = signed_in
    live_stack.django(
        "from engine import workflows; workflows['stumble'].start({'attempts': 1})"
    )  # fails the same way
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/workflows/stumble/start/")
    type_json(page, '{"attempts": 4}')
    page.add_init_script(COUNT_SHIFTS)
    page.get_by_role("button", name="Start stumble").click()
    page.wait_for_url("**/instances/**")
    live(page)
    menu = page.locator("#more-actions > summary")
    before = menu.bounding_box()
    status(page, "errored")
    assert menu.bounding_box() == before
    expect(page.locator("#result")).to_contain_text("attempt 4")
    expect(page.locator("#why")).to_contain_text("There is a stone in the way.")
    expect(page.locator("#why")).to_contain_text("the same way")
    expect(page.locator("#flash")).to_be_empty()
    assert shift(page) <= LARGEST_SHIFT


def test_a_narrow_page_does_not_jump_while_steps_are_added(signed_in: Page, live_stack: LiveStack) -> None:
    page, types = signed_in, [f"t-{number}" for number in range(8)]  # the sentence has two lines
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto("/workflows/listen-for/start/")
    type_json(page, json.dumps(types))
    page.add_init_script(COUNT_SHIFTS)
    page.get_by_role("button", name="Start listen-for").click()
    page.wait_for_url("**/instances/**")
    live(page)
    status(page, "waiting")
    live_stack.django(
        f"""
from time import sleep
from engine.models import Instance
instance = Instance.objects.get(id="{page.url.rstrip("/").rsplit("/", 1)[1]}")
for name in {types}:
    instance.send_event(name)
    sleep(0.3)
"""
    )
    status(page, "complete")
    expect(page.locator("#steps > tr.row")).to_have_count(8)
    assert shift(page) <= LARGEST_SHIFT


def test_a_button_says_at_once_that_it_was_pressed_and_is_pressed_once(
    signed_in: Page, live_stack: LiveStack
) -> None:
    page = signed_in
    start_order(page)
    status(page, "waiting")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.locator("#more-actions > summary").click()
    button = page.locator("#act-pause")
    with hung(live_stack):
        button.click()
        expect(button).to_have_attribute("aria-busy", "true")
        button.click()
        button.click()
        page.wait_for_timeout(300)
    status(page, "paused")
    assert len([url for url in sent if url.endswith("/pause/")]) == 1
    expect(page.locator("[aria-busy]")).to_have_count(0)
    terminate(page, "only a test")


def test_a_server_that_hangs_is_not_said_to_be_live(signed_in: Page, live_stack: LiveStack) -> None:
    page = signed_in
    page.goto("/instances/")
    live(page)
    with hung(live_stack):
        expect(page.locator("body")).to_have_attribute("data-live", "offline")
        expect(page.locator("#offline")).to_contain_text(
            re.compile(r"No response from the server · showing \d\d:\d\d:\d\d")
        )
    expect(page.locator("body")).to_have_attribute("data-live", "live")
    expect(page.locator("#offline")).to_be_hidden()


def test_a_page_that_opens_while_the_server_hangs_is_not_live_either(
    signed_in: Page, live_stack: LiveStack
) -> None:
    page = signed_in
    page.goto("/instances/")
    live(page)
    with hung(live_stack):
        page.evaluate("document.body.dataset.live = 'offline'; Studio.reconnect()")
        expect(page.locator("#offline")).to_be_visible()
    expect(page.locator("body")).to_have_attribute("data-live", "live")


def test_a_device_without_a_network_says_so_at_once(signed_in: Page, complaints: Complaints) -> None:
    complaints.allow("ERR_INTERNET_DISCONNECTED|htmx")
    page = signed_in
    page.goto("/instances/")
    live(page)
    page.context.set_offline(True)
    expect(page.locator("#offline")).to_contain_text("This device is offline", timeout=5_000)
    page.context.set_offline(False)
    expect(page.locator("body")).to_have_attribute("data-live", "live")


def unsent(page: Page) -> str:
    box = page.locator("#unsent .unsent")
    expect(box.locator("> p").first).to_contain_text(re.compile(r"was not sent\. \S"))
    return " ".join(box.inner_text().split())


def test_what_was_typed_stays_when_somebody_else_answers(signed_in: Page, new_tab: NewTab) -> None:
    page, other = signed_in, new_tab()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(page)
    for where in (page.url, "/approvals/?box=open"):
        other.goto(where)
        if where != page.url:
            other.locator(".inbox-list a", has_text=page.url.rstrip("/").rsplit("/", 1)[1]).click()
        live(other)
        fill(other, "17", "No")
        other.get_by_label("Comment").fill("half of it, because …")
    fill(page, "5")
    page.get_by_label("Comment").fill("was quicker")
    page.get_by_role("button", name="Send answer").click()
    status(page, "complete")
    said = unsent(other)
    assert said.startswith("Your answer was not sent. Answered by admin ")
    for typed in ("was quicker", "No", "17", "half of it, because …"):
        assert typed in said
    other.get_by_role("button", name="Copy what you typed").click()
    copied = other.evaluate("navigator.clipboard.readText()")
    assert "Amount: 17" in copied
    assert "Comment: half of it, because …" in copied
    assert page.locator("#unsent .unsent").count() == 0


def test_two_fields_with_the_same_label_both_stay(signed_in: Page, new_tab: NewTab) -> None:
    page, other = signed_in, new_tab()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/workflows/ask-addresses/start/")
    page.get_by_role("button", name="Start ask-addresses").click()
    page.wait_for_url("**/instances/**")
    other.goto(page.url)
    live(other)
    for group, street, home in (("Billing", "Station Road", "Yes"), ("Shipping", "Harbour Lane", "No")):
        fields = other.get_by_role("group", name=group, exact=True)
        fields.get_by_label("street").fill(street)
        fields.get_by_label(home, exact=True).check()
    terminate(page, "duplicate")
    unsent(other)
    other.get_by_role("button", name="Copy what you typed").click()
    assert other.evaluate("navigator.clipboard.readText()").splitlines() == [
        "Billing › Street: Station Road",
        "Billing › Is Home: Yes",
        "Shipping › Street: Harbour Lane",
        "Shipping › Is Home: No",
    ]


def test_what_was_typed_stays_when_the_instance_is_terminated(signed_in: Page, new_tab: NewTab) -> None:
    page, other = signed_in, new_tab()
    address = ask(page)
    other.goto(address)
    live(other)
    fill(other, "17")
    terminate(page, "duplicate")
    said = unsent(other)
    assert said.startswith("Your answer was not sent. Closed: admin terminated the instance ")
    assert "(“duplicate”)" in said
    assert "17" in said
    other.get_by_role("button", name="Discard").click()
    expect(other.locator("#unsent .unsent")).to_have_count(0)


def test_an_event_that_was_not_sent_stays_when_the_instance_ends(signed_in: Page, new_tab: NewTab) -> None:
    page, other = signed_in, new_tab()
    start_order(page)
    status(page, "waiting")
    other.goto(page.url)
    live(other)
    choose(other, "Send event…")
    other.fill("#event-type", "paid")
    type_json(other, '{"cents": 12345}', within="dialog")
    terminate(page, "only a test")
    said = unsent(other)
    assert said.startswith("Your event was not sent. ")
    assert '{"cents": 12345}' in said
    expect(other.locator("dialog[open]")).to_have_count(0)


def test_what_was_typed_stays_after_a_sign_out_elsewhere(
    just_signed_in: Page, new_tab: NewTab, complaints: Complaints
) -> None:
    complaints.allow("401|403")
    page, other = just_signed_in, new_tab()
    ask(page)
    fill(page, "17")
    other.goto("/")
    other.locator("form[action='/sign-out/'] button").click()
    other.wait_for_url("**/sign-in/")
    page.get_by_role("button", name="Send answer").click()
    expect(page.locator("#flash")).to_contain_text("You are signed out, so nothing was sent.")
    expect(page.get_by_label("Amount")).to_have_value("17")


def test_a_dialog_stays_with_what_was_typed_after_a_sign_out_elsewhere(
    just_signed_in: Page, new_tab: NewTab, complaints: Complaints
) -> None:
    complaints.allow("401|403")
    page, other = just_signed_in, new_tab()
    start_order(page)
    choose(page, "Terminate…")
    page.fill("#reason", "a long story")
    other.goto("/")
    other.locator("form[action='/sign-out/'] button").click()
    other.wait_for_url("**/sign-in/")
    page.get_by_role("button", name="Terminate", exact=True).click()
    expect(page.locator("dialog[open] .note")).to_contain_text("You are signed out, so nothing was sent.")
    expect(page.locator("#reason")).to_have_value("a long story")
    expect(page.locator("[aria-busy]")).to_have_count(0)


def test_a_dialog_stays_with_what_was_typed_while_the_server_hangs(
    signed_in: Page, live_stack: LiveStack
) -> None:
    page = signed_in
    start_order(page)
    choose(page, "Terminate…")
    page.fill("#reason", "a long story")
    with hung(live_stack):
        page.get_by_role("button", name="Terminate", exact=True).click()
        expect(page.locator("dialog[open] .note")).to_contain_text("The server did not respond")
        expect(page.locator("#reason")).to_have_value("a long story")
    page.get_by_role("button", name="Terminate", exact=True).click()
    status(page, "terminated")


DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
WHOLE = re.compile(rf"{DATE} UTC|{DATE}\.\d{{3}} to {DATE}\.\d{{3}} UTC")


def titles_of_times(page: Page) -> list[str]:
    titles: list[str] = page.locator("main time").evaluate_all("(all) => all.map((one) => one.title)")
    assert titles
    return titles


def test_a_time_says_the_whole_date_when_it_is_pointed_at(signed_in: Page) -> None:
    """Also how long something took, and also what a live update draws."""
    page = signed_in
    page.goto("/workflows/tick/start/")
    page.get_by_role("button", name="Start tick").click()
    page.wait_for_url("**/instances/**")
    live(page)
    status(page, "complete")
    expect(page.locator("#head time.lasted")).to_have_attribute("title", WHOLE)
    expect(page.locator("#steps .took time.lasted")).to_have_attribute("title", WHOLE)
    for where in (page.url, "/", "/instances/", "/workflows/", "/audit/"):
        page.goto(where)
        page.wait_for_timeout(1_200)  # the times tick
        assert [title for title in titles_of_times(page) if not WHOLE.fullmatch(title)] == []


def test_the_keyboard_shows_the_whole_dates_of_a_row(signed_in: Page) -> None:
    page = signed_in
    start_order(page)
    tip = page.get_by_role("tooltip")
    row = page.locator("#steps a.open").first
    row.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(tip).to_contain_text("UTC")
    expect(row).to_have_attribute("aria-describedby", "tip")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.goto("/instances/")
    page.keyboard.press("j")
    expect(tip).to_have_text(re.compile(rf"(?:ago|just now) = {DATE} UTC"))


EVIL = "\u202etxet live"


def test_a_value_turns_only_itself_around(signed_in: Page) -> None:
    """What follows a right-to-left override stays in its place."""
    page = signed_in
    page.goto("/workflows/listen-for/start/")
    type_json(page, json.dumps([EVIL]))
    page.fill("#tags", EVIL)
    page.get_by_role("button", name="Start listen-for").click()
    page.wait_for_url("**/instances/**")
    live(page)
    choose(page, "Terminate…")
    page.fill("#reason", EVIL)
    page.get_by_role("button", name="Terminate", exact=True).click()
    status(page, "terminated")
    for where in (page.url, "/instances/?workflow=listen-for", "/audit/"):
        page.goto(where)
        expect(page.locator("main")).to_contain_text(EVIL)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        assert page.evaluate(TURNED, EVIL) == []


def test_json_shows_each_character_and_copies_the_value(signed_in: Page, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = signed_in
    page.goto("/workflows/listen-for/start/")
    type_json(page, json.dumps([EVIL]))
    page.get_by_role("button", name="Start listen-for").click()
    page.wait_for_url("**/instances/**")
    page.locator("#lanes").get_by_role("link", name="Start", exact=True).click()
    expect(page.locator("#pane .json").first).to_contain_text('"\\u202etxet live"')
    page.get_by_role("button", name="Copy params").click()
    expect(page.locator(".copy.done")).to_be_visible()
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == [EVIL]


# Within a block, what is no part of the value stands from left to right, in the order of the text; so does the value
# between its neighbours.
TURNED = """
(evil) => {
  const turned = new Set(), last = new Map();
  const isInline = (node) => ["inline", "contents"].includes(getComputedStyle(node).display);
  const blockOf = (node) => (isInline(node) ? blockOf(node.parentElement) : node);
  const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const from = node.data.indexOf(evil), block = blockOf(node.parentElement);
    if (!block.textContent.includes(evil)) continue;
    for (let at = 0; at < node.length; at += 1) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + 1);
      const { left, right, top, width } = range.getBoundingClientRect();
      if (!width) continue;
      const isValue = from >= 0 && at >= from && at < from + evil.length;
      const seen = last.get(block), before = seen && Math.abs(seen.top - top) < 8 ? seen : null;
      // Of a value only its place counts: it starts where what is before it ends, and ends where it is widest.
      const start = before?.isValue && isValue ? before.start : before?.end ?? 0;
      if (before && left < (isValue ? start : before.end) - 1) turned.add(node.data.slice(0, 80));
      const end = before?.isValue && isValue ? Math.max(before.end, right) : right;
      last.set(block, { isValue, top, start, end });
    }
  }
  return [...turned];
}
"""


def test_a_refused_answer_comes_back_with_what_was_typed(signed_in: Page, complaints: Complaints) -> None:
    """Once it is corrected and sent, nothing is left unsent, even if its effect is seen before the reply."""
    complaints.allow("422")
    page = signed_in
    ask(page)
    fill(page, "9999")
    page.get_by_role("button", name="Send answer").click()
    expect(page.get_by_role("alert")).to_contain_text("Not sent: fix 1 field.")
    expect(page.get_by_label("Amount")).to_have_value("9999")
    fill(page, "9")
    page.get_by_role("button", name="Send answer").click()
    status(page, "complete")
    expect(page.locator("#unsent .unsent")).to_have_count(0)
