"""Make the screenshots of the README, docs/images/*.png: `make shots`.

A Studio of its own, with the demo and the README's workflow in it, is filled, brought to the moment that each picture
shows, and looked at by Chromium. Look at the pictures before you commit them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from tests.conftest import home_directory
from tests.live import PROJECT, LiveStack
from tests.shots.shop import write_shop

IMAGES = PROJECT / "docs" / "images"
WIDTH = 1440
MARGIN = 32  # pixels below what a picture shows
ATTEMPTS = "#pane ol.attempts >> nth=0"
LARGEST = 200_000  # bytes of a picture
CALL = "from tests.shots import population as p; p.{}()"

FAILED_TWICE = """
    SELECT count(*) = 2 FROM engine_attempt JOIN engine_instance ON engine_instance.key = instance_id
    WHERE id = 'A-4711' AND engine_attempt.status = 'errored'
"""
SLEEPS = "SELECT count(*) = 9 FROM engine_instance WHERE workflow = 'ship-order' AND waiting_for = 'sleep'"
IS_PAST = "SELECT count(*) = 0 FROM engine_instance WHERE finished_at IS NULL"


def main() -> None:
    with tempfile.TemporaryDirectory() as code, home_directory() as home:
        write_shop(Path(code))
        stack = LiveStack(home, REPRISE_DEMO="1", REPRISE_APPS="shop", PYTHONPATH=f"{PROJECT}:{code}")
        stack.start()
        try:
            with sync_playwright() as playwright, closing(_chromium(playwright)) as browser:
                _shoot(stack, browser)
        finally:
            stack.stop()


def _chromium(playwright: Playwright) -> Browser:
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    flags = ["--disable-gpu", "--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    return playwright.chromium.launch(executable_path=program, args=flags)


def _shoot(stack: LiveStack, browser: Browser) -> None:
    stack.django(CALL.format("people"))
    stack.django(CALL.format("past"))
    _until(stack, SLEEPS)
    stack.django(CALL.format("skip_sleeps"))
    _until(stack, IS_PAST)
    stack.django(CALL.format("age"))
    page = _signed_in(browser, stack)
    stack.django(CALL.format("present"))
    # Now while the third attempt is not due yet.
    _until(stack, FAILED_TWICE)
    _take(page, "/workflows/ship-order/instances/A-4711/", "instance.png", upto=ATTEMPTS, prepare=_see_charge)
    _take(page, "/", "home.png", upto="main table >> nth=-1")
    _take(page, "/approvals/?box=open", "approval.png", upto="form.answer button >> nth=-1", prepare=_fill_in)


def _signed_in(browser: Browser, stack: LiveStack) -> Page:
    context = browser.new_context(
        base_url=stack.url, viewport={"width": WIDTH, "height": 900}, color_scheme="light", locale="en-GB"
    )
    page = context.new_page()
    page.goto("/sign-in/")
    page.fill("input[name=username]", "ana")
    page.fill("input[name=password]", "correct-horse-battery-staple")
    page.press("input[name=password]", "Enter")
    page.wait_for_url(lambda url: "/sign-in/" not in url)
    return page


def _take(
    page: Page, address: str, name: str, *, upto: str, prepare: Callable[[Page], None] | None = None
) -> None:
    """Take a picture of the page down to an element."""
    page.goto(address)
    page.wait_for_selector("body[data-live=live]")
    if prepare is not None:
        prepare(page)
    box = page.locator(upto).bounding_box()
    assert box is not None
    page.set_viewport_size({"width": WIDTH, "height": round(box["y"] + box["height"]) + MARGIN})
    picture = IMAGES / name
    picture.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=picture, animations="disabled", caret="hide")
    size = picture.stat().st_size
    print(f"{picture.relative_to(PROJECT)}: {size:,} bytes")
    if size > LARGEST:
        raise SystemExit(f"{name} is over {LARGEST:,} bytes.")


def _see_charge(page: Page) -> None:
    """Wait for the pane of the step that is retried, which is open."""
    page.locator(ATTEMPTS).wait_for()
    page.mouse.move(0, 0)


def _fill_in(page: Page) -> None:
    page.locator(".inbox-list a", has_text="ACME").click()
    page.locator(".inbox-list .chosen", has_text="ACME").wait_for()
    form = page.locator("form.answer")
    form.get_by_label("Yes", exact=True).check()
    form.get_by_label("Amount").fill("1240")
    form.get_by_label("Note to the customer").fill("Sorry about the broken lid. Keep the teapot.")


def _until(stack: LiveStack, question: str) -> None:
    deadline = time.monotonic() + 120
    with psycopg.connect(stack.dsn(), autocommit=True) as connection:
        while not connection.execute(question).fetchone()[0]:  # type: ignore[index]
            if time.monotonic() > deadline:
                raise SystemExit(f"It never came to this: {question}\n{stack.output()}")
            time.sleep(0.1)


main()
