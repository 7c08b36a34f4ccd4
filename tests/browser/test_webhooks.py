"""A webhook in a browser: made, its secret shown once, tried, delivered to, sent again, its secret changed."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Locator, Page, expect
from standardwebhooks import Webhook as Signer

from tests.browser.conftest import Complaints
from tests.browser.test_journey import live

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

NewTab = Callable[[], Page]
SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{32,}")
NAP = {"seconds": 0}


def create(page: Page, name: str, **more: str) -> tuple[str, str]:
    """Fill the form; return the address and the secret."""
    page.goto("/webhooks/new/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Sender", exact=True).select_option("standard")
    page.get_by_label("Workflow", exact=True).select_option("nap")
    for field, text in more.items():
        page.fill(f"#{field}", text)
    page.get_by_role("button", name="Create webhook").click()
    shown = page.locator("#new-secret")
    expect(shown).to_have_text(SECRET)
    # Its script gives it the address of the webhook.
    expect(page).not_to_have_url(re.compile("/webhooks/new/$"))
    return page.locator("#address").inner_text(), shown.inner_text()


def post(address: str, secret: str, name: str, body: object = NAP) -> int:
    """Deliver as a sender does; return the status of the answer."""
    now, text = datetime.now(UTC), json.dumps(body)
    headers = {
        "Content-Type": "application/json",
        "webhook-id": name,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Signer(secret).sign(name, now, text),
    }
    try:
        with urllib.request.urlopen(
            urllib.request.Request(address, text.encode(), headers), timeout=60
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def show(page: Page) -> None:
    """Ask for the deliveries that have arrived below an open page: they wait, so that nothing moves."""
    page.get_by_role("button", name="new · show").click()


def row(page: Page, name: str) -> Locator:
    return page.locator("table.deliveries tbody tr", has=page.get_by_title(name, exact=True))


def test_it_is_made_tried_delivered_to_and_its_secret_changed(
    signed_in: Page, new_tab: NewTab, complaints: Complaints
) -> None:
    complaints.allow("422")
    page, listing = signed_in, new_tab()
    page.goto("/")
    page.get_by_role("link", name="Webhooks").click()
    page.wait_for_url("**/webhooks/")
    page.get_by_role("link", name="New webhook").click()

    # What a delivery would do is shown while the form is filled in; a missing field is named.
    page.get_by_label("Name", exact=True).fill("shop")
    page.get_by_label("Sender", exact=True).select_option("standard")
    page.get_by_label("Workflow", exact=True).select_option("nap")
    page.get_by_label(re.compile("Example payload")).fill('{"wait": 0, "by": "Ana"}')
    expect(page.locator("#checked")).to_contain_text("params/by")
    page.get_by_label(re.compile("Parameters")).fill("seconds: /wait")
    expect(page.locator("#checked")).to_contain_text('"seconds": 0')
    expect(page.locator("#checked")).not_to_contain_text("params/by")
    page.get_by_label("Deliveries per minute").fill("many")
    page.get_by_role("button", name="Create webhook").click()
    expect(page.get_by_role("alert")).to_have_text("Not saved: fix 1 field.")
    page.get_by_label("Deliveries per minute").fill("600")
    page.get_by_role("button", name="Create webhook").click()

    # Its secret is shown once: neither a reload nor the way back shows it again.
    expect(page.locator("#new-secret")).to_have_text(SECRET)
    secret, address = page.locator("#new-secret").inner_text(), page.locator("#address").inner_text()
    live(page)  # told that it is left, the page closes its socket; one that still opens would complain
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    assert SECRET.search(page.content()) is None
    page.reload()
    expect(page.locator("#address")).to_have_text(address)
    assert SECRET.search(page.content()) is None
    where = page.url

    # A test does what a delivery does.
    page.get_by_text("Send a test").first.click()
    expect(page.get_by_label("Body (JSON)")).to_have_value('{"wait": 0, "by": "Ana"}')
    page.get_by_role("button", name="Send a test").click()
    expect(page.locator("#flash")).to_contain_text("Sent a test: started")
    expect(page.locator("main")).to_contain_text("as a test")

    # Deliveries are announced, and in the list the last one changes by itself. One that comes again is done once.
    page.goto(where)
    listing.goto("/webhooks/")
    live(page)
    live(listing)
    listed = listing.locator("table.hooks tbody tr", has_text="shop")
    expect(listed).to_contain_text("started")
    assert post(address, secret, "one", {"wait": "soon"}) == 422
    show(page)
    expect(row(page, "one")).to_contain_text("refused")
    expect(row(page, "one")).to_contain_text("params/seconds")
    expect(listed).to_contain_text("refused")
    assert [post(address, secret, "two", {"wait": 0}) for _ in range(2)] == [202, 202]
    show(page)
    expect(row(page, "two")).to_contain_text("came 2 times")
    expect(page.locator("table.deliveries tbody tr").first).to_contain_text("two")
    assert post(address, "whsec_" + "A" * 32, "forged") == 401
    expect(page.locator("#hook-facts")).to_contain_text(re.compile(r"Wrong signatures\s+1"))
    expect(listed.locator(".wrong")).to_contain_text("1")
    expect(page.locator("table.deliveries tbody tr")).to_have_count(3)

    # Fixed elsewhere, what was refused is sent again.
    listing.goto(f"{where}edit/")
    listing.get_by_label(re.compile("Parameters")).fill("seconds: = 0")
    listing.get_by_role("button", name="Save").click()
    expect(page.locator("#hook-facts")).to_contain_text("seconds: = 0")
    row(page, "one").get_by_title("one", exact=True).click()
    expect(page.locator("h1")).to_have_text("one")
    expect(page.locator("main")).to_contain_text('"soon"')
    page.get_by_role("button", name="Send again").click()
    expect(page.locator("#flash")).to_contain_text("Sent again: started")
    show(listing)
    expect(listing.locator("table.deliveries tbody tr").first).to_contain_text("sent again")
    page.locator("main dd a.mono").first.click()
    expect(page.locator("#head .chip")).to_have_text("complete")

    # A new secret; the old one is valid for a while.
    page.goto(where)
    page.get_by_text("Change the secret").first.click()
    page.get_by_role("button", name="Change the secret").click()
    expect(page.locator("#new-secret")).to_have_text(SECRET)
    new = page.locator("#new-secret").inner_text()
    assert new != secret
    live(page)
    assert [post(address, one, name) for one, name in ((new, "new"), (secret, "old"))] == [202, 202]
    show(page)
    expect(row(page, "old")).to_contain_text("started")
    expect(page.locator("#new-secret")).to_have_text(new)
    expect(page.locator("#hook-facts")).to_contain_text("Old secret")
    page.reload()
    expect(page.locator("#address")).to_have_text(address)
    assert SECRET.search(page.content()) is None
    assert post(address, new, "newer") == 202

    page.get_by_text("Delete", exact=True).click()
    page.get_by_label("Reason").fill("only a test")
    page.get_by_role("button", name="Delete shop").click()
    expect(page.locator("#flash")).to_contain_text("Deleted webhook shop.")
    expect(listing.locator("#flash")).to_contain_text("This webhook was deleted.")
    assert post(address, new, "late") == 404


def test_nothing_moves_below_the_pointer_or_while_somebody_types(signed_in: Page) -> None:
    page = signed_in
    address, secret = create(page, "steady", only_if="/seconds = 7")
    for n in range(3):
        post(address, secret, f"old-{n}")
    page.reload()
    live(page)

    arrived: list[str] = []

    def moves(what: Locator, name: str, key: str = secret) -> float:
        """Return by how many pixels it moves when a delivery comes."""
        before = what.bounding_box()
        post(address, key, name)
        if key == secret:
            arrived.append(name)
            expect(page.get_by_role("button", name=f"{len(arrived)} new · show")).to_be_visible()
        else:
            expect(page.locator("#hook-facts")).to_contain_text("Wrong signatures")
        after = what.bounding_box()
        assert before is not None
        assert after is not None
        return abs(after["y"] - before["y"])

    for height in (1400, 500):  # all of the page, and a part of it
        page.set_viewport_size({"width": 1440, "height": height})
        button = row(page, "old-1").get_by_role("button")
        button.hover()
        assert moves(button, f"hovered-{height}") <= 1
        page.mouse.move(5, 5)
        button.focus()
        assert moves(button, f"focused-{height}") <= 1
        expect(button).to_be_focused()

    page.get_by_text("Send a test").first.click()
    body = page.get_by_label("Body (JSON)")
    body.fill('{"half": "typed"')
    assert moves(body, "typing") <= 1
    assert moves(body, "forged", "whsec_" + "A" * 32) <= 1
    expect(body).to_be_focused()
    expect(body).to_have_value('{"half": "typed"')
    expect(page.locator("details#test")).to_have_attribute("open", "")


def test_the_pages_are_clean_at_both_widths_and_in_both_colours(signed_in: Page) -> None:
    page = signed_in
    address, secret = create(page, "n" * 64, id_from="= " + "a" * 90, tags_from="= " + "t" * 60)
    post(address, secret, "d" * 200)
    page.reload()
    hook = page.url
    delivery = row(page, "d" * 200).get_by_title("d" * 200).get_attribute("href")
    for where in ("/webhooks/", "/webhooks/new/", hook, f"{hook}edit/", str(delivery)):
        page.goto(where)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            for width in (390, 1440):
                page.set_viewport_size({"width": width, "height": 844})
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (where, width)
