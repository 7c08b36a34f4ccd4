"""Secrets that were typed stay in the page while its form is swapped. Needs a browser, but no running Studio."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from playwright.sync_api import Browser, Page, Route, expect
from pydantic import BaseModel, SecretStr, TypeAdapter

from engine.values.serialization.secret_schema import json_schema
from studio.forms.json_form import JsonForm

pytestmark = [pytest.mark.browser, pytest.mark.second_tier]
ADDRESS = "http://form.test/"
SCRIPTS = ("frame/studio.js", "forms/fields.js", "vendor/studio-htmx.js")
CONFIG = """{"includeIndicatorCSS": false, "mode": "same-origin", "history": false}"""


class Safe(BaseModel):
    name: str = ""
    code: SecretStr


ROOT = json_schema(TypeAdapter(dict[str, list[Safe]]))
BEGUN = '{"a": [{"name": "1", "code": "x"}, {"name": "2", "code": "x"}], "b": [{"name": "3", "code": "x"}]}'


def answer(route: Route) -> None:
    """Answer as the page of a form does: a posted form comes back without its secrets."""
    name = route.request.url.removeprefix(ADDRESS)
    if name:
        script = Path(settings.BASE_DIR) / "static" / "studio" / name
        route.fulfill(path=script) if name in SCRIPTS else route.fulfill(status=404)  # its icons
        return
    posted = dict(parse_qsl(route.request.post_data or "", keep_blank_values=True))
    form = JsonForm.posted(ROOT, posted) if posted else JsonForm.fresh(ROOT, BEGUN)
    form = form.without_secrets()
    given = {"json_form": form, "control": form.controls(), "form_id": "form", "form_address": ADDRESS}
    inner = render_to_string("studio/forms/json-form.html", given)
    scripts = "".join(f'<script src="{ADDRESS}{script}" defer></script>' for script in SCRIPTS)
    head = f"<!doctype html><title>Form</title><meta name='htmx-config' content='{CONFIG}'>{scripts}"
    check = '<button name="op" value="check" id="press" hx-post="/" hx-target="#form" hx-select="#form" '
    check += 'hx-swap="outerMorph" hx-include="#form">Check</button>'
    page = f'{head}<form id="form" method="post">{inner}{check}</form>'
    route.fulfill(body=page, content_type="text/html")


@pytest.fixture
def form(browser: Browser) -> Iterator[Page]:
    with closing(browser.new_context()) as context:
        page = context.new_page()
        page.route(f"{ADDRESS}**", answer)
        page.goto(ADDRESS)
        for place, secret in (("a/0", "first"), ("a/1", "second"), ("b/0", "third")):
            page.locator(f'[name="f./{place}/code"]').fill(secret)
        yield page


def secrets(page: Page, expected: dict[str, str]) -> None:
    for place, secret in expected.items():
        expect(page.locator(f'[name="f./{place}/code"]')).to_have_value(secret)
    expect(page.locator("input[type=password]")).to_have_count(len(expected))


def test_each_typed_secret_goes_with_its_entry_when_names_are_exchanged(form: Page) -> None:
    form.locator('[name="k./a"]').fill("b")
    form.locator('[name="k./b"]').fill("a")
    form.locator('button[value="add:/a"]').click()
    secrets(form, {"b/0": "first", "b/1": "second", "b/2": "", "a/0": "third"})


def test_each_typed_secret_goes_with_its_item_and_a_check_keeps_all(form: Page) -> None:
    form.locator('button[value="down:/a/0"]').click()
    expect(form.locator('[name="f./a/0/name"]')).to_have_value("2")
    secrets(form, {"a/0": "second", "a/1": "first", "b/0": "third"})
    form.locator('button[value="remove:/a/0"]').click()
    secrets(form, {"a/0": "first", "b/0": "third"})
    form.locator('[name="k./b"]').fill("z")
    form.locator("#press").click()
    secrets(form, {"a/0": "first", "z/0": "third"})
