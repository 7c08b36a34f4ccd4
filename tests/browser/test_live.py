"""What happens to an open page when its socket drops, and when what it shows is hostile."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Dialog, Page, StorageState, WebSocketRoute, expect

from tests.browser.conftest import Complaints
from tests.browser.test_journey import choose, live, start_order, status, terminate, type_json
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

NewTab = Callable[[], Page]
RESTARTING = 1012


class Line:
    """The connection between a page and the server, which can be cut."""

    def __init__(self, page: Page, complaints: Complaints) -> None:
        complaints.allow("htmx:ws:error")  # htmx reports a cut connection in the console
        self.is_cut = False
        self.sockets: list[WebSocketRoute] = []
        page.route_web_socket(re.compile("/ws/"), self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        if self.is_cut:
            socket.close(code=RESTARTING)
            return
        socket.connect_to_server()
        self.sockets.append(socket)

    def cut(self) -> None:
        self.is_cut = True
        self.sockets[-1].close(code=RESTARTING)

    def mend(self) -> None:
        self.is_cut = False


def test_a_dropped_socket_says_so_comes_back_and_catches_up(
    signed_in: Page, new_tab: NewTab, complaints: Complaints
) -> None:
    page, other = signed_in, new_tab()
    line = Line(page, complaints)
    start_order(page)
    status(page, "waiting")
    line.cut()
    expect(page.locator("#offline")).to_contain_text(
        re.compile(r"Connection lost · showing \d\d:\d\d:\d\d · reconnecting")
    )
    other.goto(page.url)
    choose(other, "Pause")
    status(other, "paused")
    status(page, "waiting")
    line.mend()
    expect(page.locator("#offline")).to_be_hidden()
    status(page, "paused")
    terminate(other, "only a test")


def test_retry_comes_back_at_once(signed_in: Page, complaints: Complaints) -> None:
    page = signed_in
    line = Line(page, complaints)
    page.goto("/instances/")
    live(page)
    line.cut()
    expect(page.locator("#offline")).to_contain_text(re.compile(r"reconnecting in ([6-9]|1\d) s"))
    line.mend()
    page.get_by_role("button", name="Retry").click()
    expect(page.locator("body")).to_have_attribute("data-live", "live", timeout=5_000)
    expect(page.locator("#offline")).to_be_hidden()


def test_nothing_pressed_is_lost_while_the_server_is_away(
    just_signed_in: Page, complaints: Complaints
) -> None:
    complaints.allow("ERR_FAILED")
    page = just_signed_in
    line = Line(page, complaints)
    page.goto("/instances/")
    live(page)
    line.cut()
    expect(page.locator("#offline")).to_be_visible()
    page.route("**/live/**", lambda route: route.abort())
    sign_out = page.locator("form[action='/sign-out/'] button")
    sign_out.click()
    expect(page.locator("#flash")).to_contain_text("The server does not respond, so nothing was sent.")
    expect(sign_out).not_to_have_attribute("aria-busy", "true")
    assert page.url.endswith("/instances/")
    page.route(re.compile(r"/jump/jump\b[^/]*js"), lambda route: route.abort())
    page.keyboard.press("Control+k")
    expect(page.locator("#flash")).to_contain_text("so the search did not open")
    # The server is back, but not the socket.
    page.unroute("**/live/**")
    sign_out.click()
    page.wait_for_url("**/sign-in/")


def test_what_was_typed_on_a_page_without_a_socket_stays_there_while_the_server_is_away(
    just_signed_in: Page, new_tab: NewTab, complaints: Complaints
) -> None:
    complaints.allow("ERR_FAILED|401")
    page = just_signed_in
    page.goto("/pause-workflows/?workflow=tick")
    page.get_by_role("textbox", name="Reason").fill("The bank is away.")
    pause = page.get_by_role("button", name=re.compile("^Pause"))
    page.route("**/*", lambda route: route.abort())
    pause.click()
    said = page.locator("#flash")
    expect(said).to_contain_text("The server does not respond, so nothing was sent. Try again in a moment.")
    expect(pause).not_to_have_attribute("aria-busy", "true")
    page.unroute("**/*")
    other = new_tab()
    other.goto("/")
    other.locator("form[action='/sign-out/'] button").click()
    other.wait_for_url("**/sign-in/")
    pause.click()
    expect(said).to_contain_text("You are signed out, so nothing was sent.")
    expect(page.get_by_role("textbox", name="Reason")).to_have_value("The bank is away.")


def test_a_page_whose_person_signed_out_elsewhere_says_so_and_leads_back(
    just_signed_in: Page, new_tab: NewTab, live_stack: LiveStack, complaints: Complaints
) -> None:
    complaints.allow("401")
    page, other = just_signed_in, new_tab()
    start_order(page)
    status(page, "waiting")
    where = page.url
    other.goto("/")
    other.locator("form[action='/sign-out/'] button").click()
    other.wait_for_url("**/sign-in/")
    with page.expect_response(lambda answer: "/live/" in answer.url and answer.status == 401):
        page.evaluate("document.querySelector('#reconcile').dispatchEvent(new CustomEvent('studio:tick'))")
    expect(page.locator("#offline")).to_contain_text("You are signed out. Sign in again to continue.")
    choose(page, "Pause")
    page.wait_for_url(re.compile(r"/sign-in/\?next="))
    name, password = live_stack.account
    page.fill("input[name=username]", name)
    page.fill("input[name=password]", password)
    page.press("input[name=password]", "Enter")
    page.wait_for_url(where)
    terminate(page, "only a test")


def test_a_page_whose_session_was_replaced_goes_on(
    browser: Browser, just_signed_in: Page, session: StorageState
) -> None:
    """A password changed in one tab gives the whole browser a new session; the other tabs must continue with it."""
    page = just_signed_in
    start_order(page)
    choose(page, "Terminate…")
    page.fill("#reason", "half typed")
    before = page.context.storage_state()
    page.context.add_cookies(session["cookies"])  # type: ignore[arg-type]
    with (
        page.expect_websocket(),
        closing(browser.new_context(base_url=page.url, storage_state=before)) as elsewhere,
    ):
        tab = elsewhere.new_page()
        tab.goto("/")
        tab.locator("form[action='/sign-out/'] button").click()
        tab.wait_for_url("**/sign-in/")
    live(page)
    expect(page.locator("#offline")).to_be_hidden()
    expect(page.locator("#reason")).to_have_value("half typed")


EVIL = [
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</script><script>alert(1)</script>",
    "<div hx-get=/sign-out hx-trigger=load>",
    "' autofocus onfocus=alert(1) '",
    "{{7*1337}}",
]


def test_what_workflows_say_runs_nowhere(signed_in: Page) -> None:
    """No dialog, no report of the policy (the `complaints` see them), no request that the user did not make."""
    page = signed_in
    opened: list[str] = []
    asked: list[str] = []

    def note(dialog: Dialog) -> None:
        opened.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/workflows/listen-for/start/")
    type_json(page, json.dumps(EVIL))
    page.fill("#tags", EVIL[0])
    page.get_by_role("button", name="Start listen-for").click()
    page.wait_for_url("**/instances/**")
    for n, text in enumerate(EVIL[:3], start=1):
        expect(page.locator("#why")).to_contain_text(text)
        choose(page, "Send event…")
        page.fill("#event-type", text)
        type_json(page, json.dumps({text: text}), within="dialog")
        with page.expect_navigation():
            page.get_by_role("button", name="Send", exact=True).click()
        expect(page.locator(f"#s-{n}")).to_have_class(re.compile("s-complete"))
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    back = page.url
    for where in ("/instances/", "/", "/workflows/listen-for/", f"{back.partition('#')[0]}?tab=activity"):
        page.goto(where)
        expect(page.locator("h1")).to_be_visible()
        page.goto(back)
    terminate(page, EVIL[0])
    assert opened == []
    assert not [url for url in asked if "sign-out" in url or url.endswith("/x")]
