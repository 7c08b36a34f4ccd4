"""The Studio behind nginx and behind Caddy: pages, static files, sign-in, and sockets of its own pages only."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from ssl import SSLSocket
from urllib.parse import urlencode

import pytest

from tests.chaos.sockets import Socket, SocketClosedError
from tests.conftest import copy_database, home_directory
from tests.deploy.proxies import HOST, Proxy, running, write_caddy, write_nginx
from tests.live import PASSWORD, LiveStack
from tests.platform.visitor import Log

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

ORIGIN = f"https://{HOST}"
CLIENT = "127.0.0.7"  # the proxy connects from another address of this machine
START = "from tests.sample.workflows import tick; print(tick.start().id)"


@pytest.fixture(scope="module")
def stack(migrated_home: Path) -> Iterator[LiveStack]:
    with home_directory() as home:
        copy_database(migrated_home, home)
        stack = LiveStack(home, REPRISE_ORIGIN=ORIGIN, REPRISE_TRUSTED_PROXIES="127.0.0.1").start()
        try:
            yield stack
        finally:
            stack.stop()


@pytest.fixture(scope="module", params=[write_nginx, write_caddy], ids=["nginx", "caddy"])
def proxy(request: pytest.FixtureRequest, stack: LiveStack) -> Iterator[Proxy]:
    with home_directory() as directory, running(request.param, directory, stack.port) as proxy:
        yield proxy


@pytest.fixture
def browser(proxy: Proxy) -> Browser:
    return Browser(proxy)


class Browser:
    """Keeps cookies, and comes from an address of its own."""

    url = ORIGIN

    def __init__(self, proxy: Proxy, client: str = CLIENT) -> None:
        self.proxy = proxy
        self.client = client
        self.cookies: dict[str, str] = {}

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def open(self) -> SSLSocket:
        return self.proxy.open(source=self.client)

    def ask(self, method: str, path: str, **fields: str) -> tuple[HTTPResponse, str]:
        connection = HTTPConnection(HOST)
        connection.sock = self.open()
        headers = {"Cookie": self.cookie, "Origin": ORIGIN, "Referer": f"{ORIGIN}/"}
        if fields:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            connection.request(method, path, urlencode(fields) if fields else None, headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        for line in answer.msg.get_all("Set-Cookie", []):
            name, _, value = line.split(";")[0].partition("=")
            self.cookies[name] = value
        return answer, text

    def sign_in(self, name: str = "admin", password: str = PASSWORD) -> HTTPResponse:
        self.ask("GET", "/sign-in/")
        token = next(value for name, value in self.cookies.items() if name.endswith("csrf"))
        fields = {"username": name, "password": password, "csrfmiddlewaretoken": token}
        return self.ask("POST", "/sign-in/", **fields)[0]


class PageSocket(Socket):
    """The socket of a page, through the proxy."""

    def __init__(self, browser: Browser, topic: str) -> None:
        self._topic = topic
        self._socket = browser.open()
        self._rest = b""
        try:
            self._shake_hands(browser, HOST)  # type: ignore[arg-type]  # it has a cookie and an address
        except BaseException:
            self._socket.close()
            raise


def test_somebody_signs_in_with_cookies_of_this_host_alone(browser: Browser) -> None:
    answer, page = browser.ask("GET", "/sign-in/")
    assert answer.status == 200, page
    assert "max-age=" in answer.headers["Strict-Transport-Security"]
    (style,) = re.findall(r'href="(/static/[^"]+\.css)"', page)[:1]
    answer, text = browser.ask("GET", style)
    assert (answer.status, answer.headers["Content-Type"].split(";")[0]) == (200, "text/css")
    assert "{" in text
    assert browser.sign_in().status == 302
    assert all(name.startswith("__Host-") for name in browser.cookies), browser.cookies
    assert browser.ask("GET", "/instances/")[0].status == 200


def test_an_open_page_shows_what_happens(browser: Browser, stack: LiveStack) -> None:
    browser.sign_in()
    with PageSocket(browser, "/ws/?topic=workflow:tick") as page:
        before = next_counts(page)
        stack.django(START)
        ends_at = time.monotonic() + 60
        while next_counts(page) == before:
            assert time.monotonic() < ends_at


def next_counts(page: PageSocket) -> str:
    """Return the numbers of instances by status in the next message that brings them."""
    while not (counts := re.findall(r'id="workflow-counts".*', page.read(), re.DOTALL)):
        continue
    return "".join(counts)


def test_no_other_page_opens_a_socket_and_the_log_names_the_client(
    browser: Browser, stack: LiveStack
) -> None:
    browser.sign_in()
    browser.url = "https://evil.example"
    log = Log(stack)
    with pytest.raises(SocketClosedError, match="403"):
        PageSocket(browser, "/ws/?topic=list")
    assert any(f"from {CLIENT}: A page from another origin" in line for line in log.lines()), stack.output()


def test_failed_sign_ins_count_for_the_client_and_not_for_the_proxy(proxy: Proxy) -> None:
    guesser, other = Browser(proxy, client="127.0.0.8"), Browser(proxy, client="127.0.0.9")
    name = f"nobody-{proxy.port}"
    answers = [guesser.sign_in(name, "wrong").status for _ in range(11)]
    assert answers == [*([200] * 10), 429]
    assert other.sign_in(name, "wrong").status == 200
