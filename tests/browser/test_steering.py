"""What one person does to an instance, another sees: restarts, earlier generations, deletion."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Complaints
from tests.browser.test_journey import NewTab, choose, live, start_order, status, terminate

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]


def look_again(page: Page) -> None:
    """Come back to a tab."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_restart_and_a_deletion_are_seen_in_the_other_tab(
    signed_in: Page, new_tab: NewTab, complaints: Complaints
) -> None:
    complaints.allow("410")  # of the deleted one
    page = signed_in
    start_order(page)
    status(page, "waiting")
    other, address = new_tab(), page.url
    other.goto(address)
    live(other)

    # From a step: a preview says first what that does.
    page.locator("#start a.open").click()
    expect(page.locator("#pane")).to_contain_text("Parameters")
    page.locator("#s-2 a.open").click()
    page.locator("#pane").get_by_role("link", name="Restart from here").click()
    expect(page.locator("main")).to_contain_text("Runs again (1)")
    expect(page.locator("main .why")).to_contain_text("from step approval, as generation 2")
    page.get_by_role("textbox", name="Reason").fill("asked too early")
    page.get_by_role("button", name="Restart from approval").click()
    expect(page.locator("#flash")).to_contain_text("as generation 2")
    status(page, "waiting")
    expect(other.locator("#flash")).to_contain_text(
        re.compile("This is generation 2 now.*by admin.*asked too early")
    )
    expect(other.locator("#s-1")).to_contain_text("kept from generation 1")
    status(other, "waiting")

    # The earlier one stays to be read.
    other.locator("#generation-menu summary").click()
    other.locator("#generation-menu").get_by_role("link", name=re.compile("Generation 1 ")).click()
    expect(other.locator("#generations [role=note]")).to_contain_text("This is generation 1 as it ended")
    expect(other.locator("#actions")).to_be_hidden()
    other.get_by_role("link", name="Go to the current generation, 2").click()
    live(other)

    # A finished one is restarted and then deleted; a user who returns to its page sees that.
    terminate(page, "only a test")
    expect(other.locator("body")).to_have_attribute("data-live", "done")
    choose(page, "Restart…")
    page.get_by_role("textbox", name="Reason").fill("once more")
    page.get_by_role("button", name="Restart from the start").click()
    expect(page.locator("#flash")).to_contain_text("as generation 3")
    look_again(other)
    expect(other.locator("#flash")).to_contain_text("This is generation 3 now.")
    live(other)
    status(page, "waiting")
    terminate(page, "enough")
    expect(other.locator("body")).to_have_attribute("data-live", "done")
    trail = new_tab()
    trail.goto("/schedules/")
    live(trail)
    trail.goto("/audit/")
    live(trail)
    choose(page, "Delete…")
    page.fill("#delete-reason", "of no use")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("#flash")).to_contain_text("Deleted ")
    expect(trail.locator("#more")).to_contain_text("1 new · show")
    look_again(other)
    expect(other.locator("#flash")).to_contain_text("Deleted by admin")
    expect(other.locator("#actions")).to_be_hidden()
    other.goto(address)
    expect(other.locator("main")).to_contain_text("“of no use”")
