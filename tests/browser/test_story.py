"""A night in which a provider goes down: what the person on call sees and does, from the page to the last payment."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import Complaints, profile, sign_in
from tests.browser.test_journey import live
from tests.conftest import copy_database, home_directory
from tests.live import LiveStack, free_port

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

BEFORE = """
from tests.night.workflows import Payment, renew_plan, take_payment
for number in range(12):
    take_payment.start(Payment({port}, "us"), id=f"before-{{number}}")
"""
NIGHT = """
from tests.night.workflows import Payment, renew_plan, take_payment
for number in range(25):
    take_payment.start(Payment({port}, "us" if number < 2 else "eu"), id=f"payment-{{number}}")
for number in range(12):
    renew_plan.start(Payment({port}, "eu"), id=f"plan-{{number}}")
for number in range(5):
    take_payment.start(Payment({port}, "eu", attempts=3), id=f"patient-{{number}}")
take_payment.start(Payment({port}, "eu", card="none"), id="odd-one")
"""


@pytest.fixture(scope="module")
def night_stack(migrated_home: Path) -> Iterator[LiveStack]:
    with home_directory() as home:
        copy_database(migrated_home, home)
        stack = LiveStack(home, REPRISE_APPS="tests.night").start()
        try:
            yield stack
        finally:
            stack.stop()


@contextmanager
def provider(port: int) -> Iterator[None]:
    """Answer on this port, until the end."""
    with socket.create_server(("127.0.0.1", port), backlog=100) as server:

        def answer() -> None:
            while True:
                try:
                    customer, _ = server.accept()
                except OSError:
                    return
                with customer:
                    customer.sendall(b"charged")

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def group(page: Page, title: str) -> Locator:
    return page.locator(".groups > li", has=page.get_by_role("link", name=title, exact=True))


def test_the_person_on_call_finds_the_outage_pauses_and_lets_all_go_on(
    night_stack: LiveStack, browser: Browser, complaints: Complaints
) -> None:
    port = free_port()
    with profile(browser, complaints, base_url=night_stack.url) as context:
        page = context.new_page()
        sign_in(page, night_stack)
        with provider(port):
            night_stack.django(BEFORE.format(port=port))
            page.goto("/instances/?query=status:complete")
            live(page)
            expect(page.locator("#list tbody tr")).to_have_count(12)
        night_stack.django(NIGHT.format(port=port))

        # Home: one incident of two workflows, its back-offs, and the one that is different.
        page.goto("/")
        live(page)
        expect(page.locator("h1")).to_have_text(
            re.compile(r"^37 instances of 2 workflows have failed in one step since \d\d:\d\d\.$")
        )
        outage = group(page, "charge: The provider does not answer.")
        expect(outage.first).to_contain_text("37")
        expect(outage.last).to_contain_text("5")
        expect(group(page, "check the card: The card has no number.")).to_contain_text("1")

        # By keyboard to the error: what they have in common, and a note for the others.
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/errors/**")
        live(page)
        expect(page.locator("#error-common")).to_contain_text(
            "95 % have params.region = eu. Usually it is 0 %."
        )
        page.keyboard.press("n")
        page.keyboard.type("The provider says: back at four.")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("#error-notes")).to_contain_text("back at four")
        page.keyboard.press("Control+k")
        expect(page.locator("#jump input")).to_be_focused()
        page.keyboard.type("pause")
        expect(page.locator("#jump a[data-first]")).to_have_text("Pause 2 workflows…")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Reason")).to_be_focused()
        page.keyboard.type("provider down")
        page.keyboard.press("Enter")
        expect(page.locator("#flash")).to_contain_text("Paused")

        # The provider is back: both go on from where the pause was made, and one action lets all try again.
        with provider(port):
            error = page.url
            page.keyboard.press("Control+k")
            expect(page.locator("#jump input")).to_be_focused()
            page.keyboard.type("resume")
            expect(page.locator("#jump a[data-first]")).to_have_text("Resume…")
            page.keyboard.press("Enter")
            expect(page.locator("input[name=how][value=all]")).to_be_focused()
            page.keyboard.press("Enter")
            expect(page.locator("#flash")).to_contain_text("Resumed")
            page.goto(error)
            live(page)
            page.get_by_role("link", name=re.compile("Retry all 37…")).click()
            sheet = page.locator("#bulk-form")
            expect(sheet).to_contain_text("error-group:")
            sheet.get_by_label("Reason").fill("the provider is back")
            sheet.get_by_role("button", name="Retry 37").click()
            page.wait_for_url("**/bulk/**")
            live(page)
            expect(page.locator("#bulk-meter")).to_contain_text(re.compile(r"Done\s*37\s*of 37"))

            # All have gone on; the five try again by themselves, and the odd one is all that is left on Home.
            page.goto("/instances/?query=status:complete")
            expect(page.locator("#list tbody tr")).to_have_count(12 + 37)
            page.goto("/")
            live(page)
            expect(outage).to_have_count(1)
            expect(outage).to_contain_text("5")
            expect(page.locator("h1")).to_contain_text(
                "1 instance of take-payment failed in check the card at"
            )
