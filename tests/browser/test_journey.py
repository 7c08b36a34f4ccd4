"""The main job, as a person does it: start with a typo, fix it, watch it live, send an event, see the output."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.conftest import Complaints
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

NewTab = Callable[[], Page]
TYPO = '{"customer": "Ana", "items": [{"sku": "a-1", "quantity": 0}'
GOOD = '{"customer": "Ana", "items": [{"sku": "a-1", "quantity": 2}]}'


def type_json(page: Page, text: str, within: str = "main") -> None:
    """Replace the text in the editor. Where there is a form, too, change to JSON first."""
    tab = page.locator(f"{within} .mode button", has_text="JSON")
    if tab.count() and tab.get_attribute("aria-current") is None:
        tab.click()
    editor = page.locator(f"{within} .cm-content")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def live(page: Page) -> None:
    expect(page.locator("body")).to_have_attribute("data-live", "live")


def status(page: Page, word: str, seconds: float = 30) -> None:
    expect(page.locator("#head .chip")).to_have_text(word, timeout=seconds * 1000)


def choose(page: Page, label: str) -> None:
    """Choose an action of an instance: the one that stands out, or one of the menu."""
    button = page.locator("#actions > .button", has_text=label)
    if not button.count():
        if not page.locator("#more-actions[open]").count():
            page.locator("#more-actions > summary").click()
        button = page.locator("#action-buttons .item", has_text=label)
    button.click()


def start_order(page: Page) -> None:
    """Send what the form sends, which has a test of its own, and open the instance's page."""
    cookies = {one["name"]: one["value"] for one in page.context.cookies()}
    form = {"params": GOOD, "csrfmiddlewaretoken": cookies["reprise-csrf"]}
    page.goto(page.request.post("/workflows/process-order/start/", form=form).url)
    page.wait_for_url("**/instances/**")
    live(page)


@pytest.mark.first_tier
def test_from_a_typo_to_the_output_in_two_tabs(
    signed_in: Page, new_tab: NewTab, complaints: Complaints
) -> None:
    """LC-47"""
    complaints.allow("422")  # the refused form itself
    page = signed_in
    page.goto("/workflows/")
    page.get_by_role("row", name="process-order").get_by_role("link", name="Start").click()

    # A typo is marked in place while it is typed, and starts nothing.
    type_json(page, TYPO)
    expect(page.locator("#check")).to_contain_text("line 1, column 60")
    expect(page.locator(".cm-lintRange-error")).to_have_count(1)
    page.get_by_role("button", name="Start process-order").click()
    expect(page.get_by_role("alert")).to_contain_text("Not started")
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.locator("main .cm-content")).to_contain_text('"quantity": 0')

    # A wrong value is named with its path.
    type_json(page, TYPO + "]}")
    expect(page.locator("#check")).to_contain_text("items/0/quantity")
    type_json(page, GOOD)
    expect(page.locator("#check")).to_contain_text("The parameters are valid.")
    page.get_by_role("button", name="Start process-order").dblclick()

    # It runs, and both tabs see it.
    page.wait_for_url("**/instances/**")
    status(page, "waiting")
    other = new_tab()
    other.goto(page.url)
    live(other)
    expect(other.locator("#why")).to_contain_text("Waits for event order-approved at step 2 approval")
    listing = new_tab()
    listing.goto("/instances/?workflow=process-order")
    row = listing.locator("table.rows tbody tr").first
    expect(row.locator(".chip")).to_have_text("waiting")
    live(listing)

    # One tab sends the event; the other and the list follow without a reload.
    choose(page, "Send event…")
    expect(page.locator("#event-type")).to_have_value("order-approved")
    expect(page.locator("#event-payload")).to_have_value(re.compile('"approved": false'))
    expect(page.locator("#event-hint")).to_contain_text("approved * boolean")
    page.fill("#event-type", "something-else")
    expect(page.locator("#event-payload")).to_have_value("")
    page.fill("#event-type", "order-approved")
    expect(page.locator("#event-payload")).to_have_value(re.compile('"approved": false'))
    type_json(page, '{"approved": true}', within="dialog")
    page.get_by_role("button", name="Send", exact=True).click()
    status(other, "complete")
    expect(other.locator("#result")).to_contain_text("shipped 2 to Ana")
    expect(row.locator(".chip")).to_have_text("complete")
    expect(other).to_have_title(re.compile("complete"))
    assert "/static/studio/icons/complete." in str(other.locator("#favicon").get_attribute("href"))
    status(page, "complete")
    expect(page.locator("#s-2 .preview")).to_contain_text('"approved": true')


def test_a_double_click_on_start_starts_one(signed_in: Page) -> None:
    page = signed_in
    page.goto("/workflows/nap/start/")
    type_json(page, '{"seconds": 600}')
    page.get_by_role("button", name="Start nap").dblclick()
    page.wait_for_url("**/instances/**")
    instance = page.url.rstrip("/").rsplit("/", 1)[1]
    page.goto("/instances/?workflow=nap")
    expect(page.locator("table.rows tbody td.id", has_text=instance)).to_have_count(1)
    page.goto(f"/workflows/nap/instances/{instance}/")
    terminate(page, "only a test")


def terminate(page: Page, reason: str) -> None:
    choose(page, "Terminate…")
    page.fill("#reason", reason)
    page.get_by_role("button", name="Terminate", exact=True).click()
    status(page, "terminated")


@pytest.mark.first_tier
def test_pause_resume_and_terminate_are_seen_in_the_other_tab(signed_in: Page, new_tab: NewTab) -> None:
    page = signed_in
    start_order(page)
    status(page, "waiting")
    other = new_tab()
    other.goto(page.url)
    live(other)
    choose(page, "Pause")
    status(other, "paused")
    expect(other.locator("#why")).to_contain_text("Paused by admin")
    page.locator("#actions").get_by_role("button", name="Resume").click()
    status(other, "waiting")
    choose(other, "Terminate…")
    expect(other.locator("#terminate")).to_be_visible()
    terminate(page, "not <b>wanted</b>")
    status(other, "terminated")
    expect(other.locator("#terminate")).to_be_hidden()
    expect(other.locator("#flash")).to_contain_text("The instance has ended")
    expect(other.locator("#why")).to_contain_text("“not <b>wanted</b>”")
    expect(other.locator("#actions").get_by_role("button", name="Pause")).to_have_count(0)
    expect(other.locator("body")).to_have_attribute("data-live", "done")


def test_what_a_person_opened_stays_open_while_the_page_changes(signed_in: Page) -> None:
    page = signed_in
    start_order(page)
    status(page, "waiting")
    page.locator("#s-1 a.open").click()
    expect(page.locator("#s-1-a1")).to_be_visible()
    choose(page, "Terminate…")
    page.fill("#reason", "half typed")
    with page.expect_response("**/pause/"):
        page.evaluate(
            "htmx.ajax('POST', location.pathname + 'pause/', {swap: 'none', source: document.body})"
        )
    status(page, "paused")
    expect(page.locator("#s-1-a1")).to_be_visible()
    expect(page.locator("#reason")).to_have_value("half typed")
    expect(page.locator("#reason")).to_be_focused()
    page.get_by_role("button", name="Terminate", exact=True).click()
    status(page, "terminated")


def test_a_link_to_an_attempt_opens_it(signed_in: Page) -> None:
    page = signed_in
    start_order(page)
    status(page, "waiting")
    expect(page.locator("#s-1-a1")).to_be_hidden()
    page.goto(f"{page.url}#s-1-a1")
    page.reload()
    expect(page.locator("#s-1-a1")).to_be_visible()
    terminate(page, "only a test")


def test_new_instances_wait_behind_a_button(signed_in: Page, new_tab: NewTab) -> None:
    """On a list with rows, or without any."""
    listing = signed_in
    listing.goto("/instances/?workflow=tick")
    live(listing)
    before = listing.locator("table.rows tbody tr").count()
    page = new_tab()
    page.goto("/workflows/tick/start/")
    page.get_by_role("button", name="Start tick").click()
    page.wait_for_url("**/instances/**")
    expect(listing.locator("#more")).to_contain_text("1 new · show")
    assert listing.locator("table.rows tbody tr").count() == before
    listing.locator("#more a").click()
    expect(listing.locator("table.rows tbody tr").first).to_contain_text("tick")


def test_keys_lead_through_the_pages(signed_in: Page) -> None:
    page = signed_in
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_url("**/instances/")
    page.keyboard.press("/")
    expect(page.locator("#query")).to_be_focused()
    page.keyboard.type("gi?")
    expect(page.locator("#query")).to_have_value("gi?")
    page.locator("h1").click()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    with page.expect_response("**/theme/"):
        page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_every_page_is_clean_at_both_widths_and_in_both_colours(signed_in: Page) -> None:
    """No violation of the policy anywhere; and no page scrolls sideways."""
    page = signed_in
    start_order(page)
    instance = page.url
    # A page that is light grows narrow, and a dark one wide: each is loaded at one width and drawn at both.
    for scheme, widths in (("light", (1440, 390)), ("dark", (390, 1440))):
        page.emulate_media(color_scheme=scheme)
        for where in (
            "/",
            "/workflows/",
            "/workflows/process-order/",
            "/workflows/process-order/start/",
            "/instances/",
            instance,
        ):
            set_width(page, widths[0])
            page.goto(where)
            page.wait_for_load_state()
            for width in widths:
                set_width(page, width)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (where, width)
    terminate(page, "only a test")


def set_width(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.wait_for_function(f"innerWidth === {width}")


def test_signing_out_ends_the_session_in_every_tab(just_signed_in: Page, new_tab: NewTab) -> None:
    page = just_signed_in
    page.goto("/instances/")
    page.locator("form[action='/sign-out/'] button").click()
    page.wait_for_url("**/sign-in/")
    page.goto("/instances/")
    expect(page).to_have_url(re.compile(r"/sign-in/\?next=/instances/$"))


def test_the_pages_read_and_act_without_a_script(
    browser: Browser, session: StorageState, live_stack: LiveStack
) -> None:
    plain = browser.new_context(java_script_enabled=False, storage_state=session, base_url=live_stack.url)
    try:
        tab = plain.new_page()
        tab.goto("/workflows/nap/start/")
        tab.get_by_role("button", name="JSON", exact=True).click()
        tab.fill("textarea[name=params]", '{"seconds": 600}')
        tab.get_by_role("button", name="Start nap").click()
        expect(tab.locator("h1")).to_be_visible()
        choose(tab, "Pause")
        expect(tab.locator("#flash")).to_contain_text("Paus")
        expect(
            tab.locator("#actions").get_by_role("button", name=re.compile("Resume|Withdraw"))
        ).to_be_visible()
    finally:
        plain.close()
