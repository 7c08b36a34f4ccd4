"""People are asked: the question appears by itself, the first answer counts, and the second user is told so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.browser.conftest import Complaints
from tests.browser.test_journey import choose, live, status, terminate, type_json

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

NewTab = Callable[[], Page]
QUESTION = "Refund 1,240.00 € to ACME?"


def ask(page: Page, **params: object) -> str:
    """Start a workflow that asks; return the address of its page."""
    page.goto("/workflows/gate/start/")
    type_json(page, json.dumps({"message": QUESTION, **params}))
    page.get_by_role("button", name="Start gate").click()
    page.wait_for_url("**/instances/**")
    live(page)
    status(page, "approval")
    return page.url


def entry(page: Page, address: str) -> str:
    """The selector of a request in the inbox, by the page of its instance."""
    return f".inbox-list li:has-text('{address.rstrip('/').rsplit('/', 1)[1]}')"


def fill(page: Page, amount: str, choice: str = "Yes") -> None:
    form = page.locator("form.answer")
    form.get_by_label(choice, exact=True).check()
    form.get_by_label("Amount").fill(amount)


def after_the_news(route: Route, request: Request) -> None:
    """Hold back the server's response until the page has received the change through its socket."""
    response = route.fetch()
    expect(request.frame.page.locator("#pane")).to_contain_text("Answered by")
    route.fulfill(response=response)


def send(page: Page) -> None:
    page.get_by_role("button", name="Send answer").click()


def test_a_question_arrives_by_itself_and_the_second_answer_is_told_who_was_first(
    signed_in: Page, new_tab: NewTab, complaints: Complaints
) -> None:
    complaints.allow("409|422")
    box, page, other = signed_in, new_tab(), new_tab()
    box.goto("/approvals/?box=open")
    live(box)
    address = ask(page)
    waiting = box.locator(entry(box, address))
    show = box.get_by_role("button", name=re.compile("show$"))  # unless the list was empty
    expect(waiting.or_(show)).to_be_visible()
    if show.is_visible():
        show.click()
    expect(waiting).to_contain_text(QUESTION)
    expect(box.locator("#approvals-count")).to_be_visible()

    # A wrong value is refused at its field, and nothing typed is lost.
    waiting.locator("a").click()
    expect(box.locator(".question")).to_have_text(QUESTION)
    live(box)
    fill(box, "1240.5")
    box.get_by_label("Comment").fill("photo is clear")
    box.evaluate("document.querySelector('form.answer').noValidate = true")
    send(box)
    expect(box.get_by_role("alert")).to_contain_text("Not sent: fix 1 field.")
    expect(box.get_by_role("alert")).to_be_focused()
    expect(box.locator("form.answer .problem")).to_contain_text("maximum of 1240")
    expect(box.get_by_label("Comment")).to_have_value("photo is clear")
    expect(box.get_by_label("Yes", exact=True)).to_be_checked()

    # Two people have the form open; what one types stays while the other answers.
    other.goto(address)
    live(other)
    fill(other, "10", "No")
    fill(box, "1200")
    box.route("**/answer/", after_the_news)
    send(box)
    expect(box.locator("#flash")).to_contain_text("Answer sent")
    expect(box.locator("#pane")).to_contain_text("Answered by admin")
    expect(box.locator(entry(box, address))).to_have_class(re.compile(r"\bgone\b"))  # it keeps its place
    status(page, "complete")
    expect(page.locator("#result")).to_contain_text("admin: True 1200.0 by card")
    expect(page.locator("#notes")).to_contain_text("decide “photo is clear”")
    expect(other.locator("form.answer")).to_have_count(0)
    status(other, "complete")

    box.goto("/approvals/?box=done")
    expect(box.locator(entry(box, address))).to_contain_text("admin")


def test_who_answers_late_is_told_so(signed_in: Page, new_tab: NewTab, complaints: Complaints) -> None:
    complaints.allow("409")
    page, late = signed_in, new_tab()
    ask(page)
    late.route_web_socket(re.compile("/ws/"), lambda socket: None)  # it hears of nothing
    late.goto(page.url)
    fill(late, "5")
    fill(page, "7")
    send(page)
    status(page, "complete")
    send(late)
    expect(late.locator("#flash")).to_contain_text("admin already answered at")
    status(late, "complete")
    expect(late.locator("#result")).to_contain_text("admin: True 7.0")


def test_what_somebody_types_stays_while_the_page_changes(signed_in: Page) -> None:
    page = signed_in
    ask(page)
    fill(page, "33")
    page.get_by_label("Comment").fill("half typed")
    choose(page, "Pause")
    status(page, "paused")
    page.evaluate("document.querySelector('#reconcile').dispatchEvent(new CustomEvent('studio:tick'))")
    page.locator("#actions").get_by_role("button", name="Resume").click()
    status(page, "approval")
    expect(page.get_by_label("Comment")).to_have_value("half typed")
    expect(page.get_by_label("Amount")).to_have_value("33")
    expect(page.get_by_label("Yes", exact=True)).to_be_checked()
    page.get_by_label("Amount").press("Enter")
    status(page, "complete")
    expect(page.locator("#result")).to_contain_text("33.0 by card")


def test_an_answer_that_was_overtaken_by_news_is_put_right(signed_in: Page) -> None:
    """What the server drew when it resumed the instance comes when the page has long heard that it waits again."""
    page = signed_in
    ask(page)
    choose(page, "Pause")
    status(page, "paused")

    def answer_late(route: Route) -> None:
        answer = route.fetch()
        status(page, "approval")
        route.fulfill(response=answer, body=answer.text().replace(">approval<", ">running<"))

    page.route("**/resume/", answer_late)
    page.locator("#actions").get_by_role("button", name="Resume").click()
    expect(page.locator("#flash")).to_contain_text("Resumed ")
    status(page, "approval")


def test_an_instance_that_ends_takes_its_form_along(signed_in: Page, new_tab: NewTab) -> None:
    page, other = signed_in, new_tab()
    address = ask(page)
    other.goto(address)
    live(other)
    expect(other.locator("form.answer")).to_have_count(1)
    terminate(page, "only a test")
    expect(other.locator("form.answer")).to_have_count(0)


def test_keys_lead_to_a_question_and_into_its_form(signed_in: Page) -> None:
    page = signed_in
    ask(page)
    page.locator("#why").click()
    page.keyboard.press("g")
    page.keyboard.press("a")
    page.wait_for_url("**/approvals/")
    page.keyboard.press("j")
    live(page)
    expect(page.locator(".inbox-list li.selected")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url("**/approvals/?box=mine&r=*")
    page.keyboard.press("a")
    expect(page.get_by_label("Yes", exact=True)).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.insert_text("5")
    page.keyboard.press("Enter")
    expect(page.locator("#pane")).to_contain_text("Answered by admin")


def test_a_question_is_answered_without_a_script(signed_in: Page) -> None:
    page = signed_in
    address = ask(page)
    browser = page.context.browser
    assert browser is not None
    plain = browser.new_context(
        java_script_enabled=False, storage_state=page.context.storage_state(), base_url=page.url
    )
    try:
        tab = plain.new_page()
        for where in (address, "/approvals/?box=open"):
            tab.goto(where)
            expect(tab.locator("form.answer")).to_have_count(1)
        tab.locator(entry(tab, address)).locator("a").click()
        fill(tab, "8")
        send(tab)
        expect(tab.locator("#flash")).to_contain_text("Answer sent")
        expect(tab.locator("#pane")).to_contain_text("Answered by admin")
    finally:
        plain.close()
    status(page, "complete")


def test_the_inbox_is_clean_at_both_widths_and_in_both_colours(signed_in: Page) -> None:
    page = signed_in
    address = ask(page, message=QUESTION + "\n" + "a-very-long-word" * 30)
    page.goto("/approvals/?box=open")
    chosen = str(page.locator(entry(page, address)).locator("a").get_attribute("href"))
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for width in (390, 1440):
            page.set_viewport_size({"width": width, "height": 844})
            for where in ("/approvals/", "/approvals/?box=open", "/approvals/?box=done", chosen, address):
                page.goto(where)
                page.wait_for_load_state()
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (where, width)
    page.goto(address)
    terminate(page, "only a test")
