"""The page of the HTTP API: it loads nothing from elsewhere, and a token that is typed there works."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_every_page import AXE, RUN
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

ISSUE = """
from studio.access import tokens
from django.contrib.auth.models import User
admin = User.objects.get(username="admin")
print(tokens.issue("docs page", by=admin, owner=admin).text)
"""
DELETE = 'from studio.models import Token; Token.objects.filter(name="docs page").delete()'
BACKGROUND = "getComputedStyle(document.documentElement).backgroundColor"
NAMED = ["label", "select-name", "landmark-unique", "scrollable-region-focusable"]
TEXT = "getComputedStyle(document.querySelector('#api-docs .opblock-summary-path')).color"


@pytest.fixture
def token(live_stack: LiveStack) -> Iterator[str]:
    yield live_stack.django(ISSUE).strip()
    live_stack.django(DELETE)


@pytest.fixture
def docs(signed_in: Page, live_stack: LiveStack) -> Page:
    """The page, drawn. What the browser complains about fails the test."""
    elsewhere: list[str] = []
    signed_in.on("request", lambda one: elsewhere.append(one.url))
    signed_in.goto("/")
    signed_in.get_by_role("link", name="HTTP API").click()
    expect(signed_in.locator("#operations-Operations-read_me")).to_be_visible()
    assert [url for url in elsewhere if not url.startswith((live_stack.url, "data:"))] == []
    return signed_in


def test_an_operation_can_be_tried_with_a_token_that_is_typed(docs: Page, token: str) -> None:
    docs.get_by_role("button", name="Authorize").click()
    docs.locator(".auth-container input").fill(token)
    docs.locator(".auth-btn-wrapper .authorize").click()
    docs.locator(".auth-btn-wrapper .btn-done").click()
    me = docs.locator("#operations-Operations-read_me")
    me.locator(".opblock-summary-control").click()
    me.get_by_role("button", name="Try it out").click()
    with docs.expect_response("**/api/v1/me") as answer:
        me.get_by_role("button", name="Execute").click()
    assert (answer.value.status, json.loads(answer.value.text())["name"]) == (200, "admin (token:docs page)")
    expect(me.locator(".live-responses-table")).to_contain_text("admin (token:docs page)")
    kept = docs.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    assert token not in kept
    docs.reload()
    docs.get_by_role("button", name="Authorize").click()
    expect(docs.locator(".auth-container input")).to_have_value("")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_theme_and_fits_a_phone(signed_in: Page, scheme: str) -> None:
    docs = signed_in
    docs.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    docs.set_viewport_size({"width": 390, "height": 844})
    docs.goto("/api/v1/docs")
    start = docs.locator("#operations-Workflows-start_instance")
    start.locator(".opblock-summary-control").click()
    expect(start.get_by_role("button", name="Try it out")).to_be_visible()
    assert docs.evaluate("document.documentElement.scrollWidth <= innerWidth")
    back, front = (brightness(docs.evaluate(what)) for what in (BACKGROUND, TEXT))
    assert (back > 200 and front < 100) if scheme == "light" else (back < 50 and front > 180)


def test_each_control_of_an_open_operation_has_a_name_and_what_scrolls_is_reached_by_keyboard(
    docs: Page,
) -> None:
    for name in ("Workflows-start_instance", "Instances-list_instances"):
        one = docs.locator(f"#operations-{name}")
        one.locator(".opblock-summary-control").click()
        one.get_by_role("button", name="Try it out").click()
        expect(one.get_by_role("button", name="Execute")).to_be_visible()
    docs.evaluate(AXE.read_text())
    assert docs.evaluate(RUN, [NAMED, "api-docs"]) == []


def brightness(colour: str) -> float:
    parts = colour.partition("(")[2].rstrip(")").replace(",", " ").split()
    return sum(float(one) for one in parts[:3]) / 3
