"""A token in a browser: what it may is previewed, it is shown once, it works until it is revoked."""

from __future__ import annotations

import re
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Complaints
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

TEXT = re.compile(r"rpr_[a-z0-9]{8}_[A-Za-z0-9_-]{43}")


def status(stack: LiveStack, token: str) -> int:
    """Return the status of the API's answer to the token."""
    asked = Request(f"{stack.url}/api/v1/me", headers={"Authorization": f"Bearer {token}"})
    try:
        with urlopen(asked, timeout=60) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def create(page: Page, name: str) -> str:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Create token").click()
    shown = page.locator("#new-token code")
    expect(shown).to_have_text(TEXT)
    return shown.inner_text()


def row(page: Page, name: str) -> str:
    return f"table.tokens tbody tr:has-text('{name}')"


def test_it_is_made_copied_used_and_revoked(
    signed_in: Page, live_stack: LiveStack, complaints: Complaints
) -> None:
    complaints.allow("422")
    page = signed_in
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/")
    page.get_by_role("link", name="Tokens").click()
    page.wait_for_url("**/tokens/")

    # What the patterns match is shown while they are typed, and nothing else moves.
    before = page.get_by_label("Expires", exact=True).bounding_box()
    page.get_by_label("Workflows", exact=True).fill("no-such-*")
    expect(page.locator("#matches")).to_contain_text("No workflow matches now.")
    page.get_by_label("Workflows", exact=True).fill("gat*")
    expect(page.locator("#matches")).to_contain_text(re.compile(r"1 of \d+ workflows:\s+gate"))
    assert page.get_by_label("Expires", exact=True).bounding_box() == before

    # A wrong field is marked, and what was typed stays.
    page.get_by_label("Expires", exact=True).select_option("date")
    page.get_by_label("Name", exact=True).fill("nightly import")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_role("alert")).to_have_text("Not created: fix 1 field.")
    expect(page.get_by_label("Workflows", exact=True)).to_have_value("gat*")
    page.get_by_label("Expires", exact=True).select_option("30")
    text = create(page, "nightly import")
    expect(page.locator("#new-token")).to_be_focused()
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#new-token .button.done")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == text
    assert text not in page.url
    assert status(live_stack, text) == 200

    # A page that the browser keeps to come back to has lost it, and a reload does not show it again.
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    assert TEXT.search(page.content()) is None
    page.reload()
    expect(page.get_by_role("alert")).to_be_visible()
    assert TEXT.search(page.content()) is None

    # With the keyboard.
    page.goto("/tokens/")
    expect(page.locator(row(page, "nightly import"))).not_to_contain_text("never")
    page.locator(row(page, "nightly import")).get_by_role("button", name="Revoke…").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Revoke nightly import?")
    expect(dialog.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#flash")).to_contain_text("Revoked nightly import.")
    expect(page.locator(row(page, "nightly import"))).to_contain_text("revoked")
    assert status(live_stack, text) == 401


def test_it_works_without_a_script(signed_in: Page, live_stack: LiveStack) -> None:
    browser = signed_in.context.browser
    assert browser is not None
    state = signed_in.context.storage_state()
    plain = browser.new_context(java_script_enabled=False, storage_state=state, base_url=live_stack.url)
    try:
        page = plain.new_page()
        page.goto("/tokens/team/")
        page.get_by_label("Workflows", exact=True).fill("gat*")
        page.get_by_role("button", name="Show matching workflows").click()
        expect(page.locator("#matches")).to_contain_text("gate")
        expect(page.get_by_role("button", name="Copy")).to_have_count(0)
        text = create(page, "without a script")
        assert status(live_stack, text) == 200
        page.goto("/tokens/team/")
        page.locator(row(page, "without a script")).get_by_role("button", name="Revoke…").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke", exact=True).click()
        expect(page.locator("#flash")).to_contain_text("Revoked without a script.")
        assert status(live_stack, text) == 401
    finally:
        plain.close()


def test_the_pages_are_clean_at_both_widths_and_in_both_colours(signed_in: Page) -> None:
    page = signed_in
    page.goto("/tokens/")
    page.get_by_label("Workflows", exact=True).fill("\n".join(["a" * 64, "b-*", "c" * 60]))
    create(page, "n" * 64)
    for where in ("", "/tokens/", "/tokens/team/", "/tokens/people/", "/audit/?verb=create_token"):
        if where:
            page.goto(where)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            for width in (390, 1440):
                page.set_viewport_size({"width": width, "height": 844})
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (where, width)
