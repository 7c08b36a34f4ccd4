"""A real browser on the whole stack; what it complains about fails the test."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Response,
    StorageState,
    expect,
    sync_playwright,
)

from tests.live import LiveStack

PATIENCE = (
    30_000  # ms; what a page should show appears in time, or the test fails: a busy machine may be slow
)

FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


class Complaints:
    """What the pages of a test complained about: script errors, refusals of the CSP, answers of 500 and above."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.allowed: list[str] = []
        self._is_over = False

    def allow(self, pattern: str) -> None:
        """Expect complaints that match `pattern`, as of a page that the test asks for though it does not exist."""
        self.allowed.append(pattern)

    def listen(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self._add(f"{page.url}: {error.stack or error}"))
        page.on("response", self._on_response)

    def end(self) -> None:
        """Listen no more: a page that is closed while its socket opens complains of that."""
        self._is_over = True

    def unexpected(self) -> list[str]:
        return [text for text in self.found if not any(re.search(pattern, text) for pattern in self.allowed)]

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "assert") or "Content Security Policy" in message.text:
            self._add(f"{message.location.get('url', '')}: {message.text}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 500:
            self._add(f"{response.url}: answered {response.status}")

    def _add(self, text: str) -> None:
        if not self._is_over:
            self.found.append(text)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium on this machine (as root, `make test` installs it through apt)")
    # Chromium's own sandbox does not run as root.
    flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=flags)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def profile(
    browser: Browser, complaints: Complaints, *, base_url: str | None = None, bypass_csp: bool = False
) -> Iterator[BrowserContext]:
    """A browser profile; every page opened in it is listened to until the profile is closed."""
    context = browser.new_context(
        base_url=base_url, bypass_csp=bypass_csp, viewport={"width": 1440, "height": 900}
    )
    context.set_default_timeout(PATIENCE)
    context.on("page", complaints.listen)
    try:
        yield context
    finally:
        context.cookies()  # by its answer, everything said before has arrived
        complaints.end()
        context.close()


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    complaints = Complaints()
    yield complaints
    assert complaints.unexpected() == []


@pytest.fixture
def context(browser: Browser, complaints: Complaints, live_stack: LiveStack) -> Iterator[BrowserContext]:
    """A browser profile of the test's own; every page opened in it is listened to."""
    with profile(browser, complaints, base_url=live_stack.url) as context:
        yield context


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture(scope="package")
def session(browser: Browser, live_stack: LiveStack) -> StorageState:
    """The cookies of a signed-in user."""
    with closing(browser.new_context(base_url=live_stack.url)) as context:
        sign_in(context.new_page(), live_stack)
        return context.storage_state()


@pytest.fixture
def signed_in(context: BrowserContext, page: Page, session: StorageState) -> Page:
    """A page in the session that all share: a test that signs out takes `just_signed_in`."""
    context.add_cookies(session["cookies"])  # type: ignore[arg-type]
    return page


@pytest.fixture
def just_signed_in(page: Page, live_stack: LiveStack) -> Page:
    """A page in a session of its own."""
    sign_in(page, live_stack)
    return page


@pytest.fixture
def new_tab(context: BrowserContext) -> Callable[[], Page]:
    """Open another tab of the same profile: the same session, a socket of its own."""
    return context.new_page


def sign_in(page: Page, stack: LiveStack, name: str = "", password: str = "") -> None:
    """Sign in, by default as the admin who is there from the start."""
    if not name:
        name, password = stack.account
    page.goto("/sign-in/")
    page.fill("input[name=username]", name)
    page.fill("input[name=password]", password)
    page.press("input[name=password]", "Enter")
    page.wait_for_url(lambda url: "/sign-in/" not in url)
