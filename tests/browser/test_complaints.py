"""The other tests hear what pages complain about, and only that."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest
from playwright.sync_api import Browser, StorageState

from tests.browser.conftest import Complaints, profile
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]


def test_what_a_page_says_until_it_is_closed_is_heard(browser: Browser) -> None:
    complaints = Complaints()
    with profile(browser, complaints) as context:
        page = context.new_page()
        page.evaluate("console.error('first'); setTimeout(() => console.error('last'))")
        page.evaluate("new Promise(setTimeout)")
    assert [text.removeprefix(": ") for text in complaints.found] == ["first", "last"]


def test_a_page_may_be_closed_while_its_socket_opens(
    browser: Browser, live_stack: LiveStack, session: StorageState
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
        for _ in range(4):
            complaints = Complaints()
            with profile(browser, complaints, base_url=live_stack.url, bypass_csp=True) as context:
                context.add_cookies(session["cookies"])  # type: ignore[arg-type]
                context.add_init_script(
                    f"WebSocket = class extends WebSocket {{ constructor() {{ super('ws://127.0.0.1:{port}/') }} }}"
                )
                for _ in range(2):
                    page = context.new_page()
                    page.goto("/approvals/?box=open")
                    page.wait_for_function("htmx.find('#live')._htmx.ws.connection.socket.readyState === 0")
            assert complaints.unexpected() == []
