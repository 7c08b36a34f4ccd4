"""The start form: by keyboard, without a script, and in turns with JSON."""

from __future__ import annotations

import json
import re
from contextlib import closing
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.test_journey import type_json
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]
START = "/workflows/process-order/start/"


def skus(page: Page) -> list[str]:
    return [one.input_value() for one in page.locator('[name^="f./items/"][name$="/sku"]').all()]


def press_tab_until(page: Page, name: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if (
            page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.name")
            == name
        ):
            return
    raise AssertionError(f"{name} cannot be reached by keyboard")


def test_a_list_is_filled_by_keyboard_and_form_and_json_edit_the_same(signed_in: Page) -> None:
    page = signed_in
    page.goto(START)
    page.get_by_label("Customer").focus()
    page.keyboard.type("Ana")
    press_tab_until(page, "f./items/0/sku")
    page.keyboard.type("a")
    page.locator('button[value="add:/items"]').focus()
    page.keyboard.press("Enter")
    expect(page.locator('[name="f./items/1/sku"]')).to_be_focused()
    page.keyboard.type("b")
    page.locator('button[value="up:/items/1"]').focus()
    page.keyboard.press("Space")
    expect(page.locator('[name="f./items/0/sku"]')).to_be_focused()
    expect(page.locator('[name="f./items/0/sku"]')).to_have_value("b")
    assert skus(page) == ["b", "a"]
    expect(page.locator("#check")).to_contain_text("The parameters are valid.")

    # JSON has the same, and what only JSON knows survives the form.
    page.get_by_role("button", name="JSON", exact=True).click()
    expect(page.locator("main .cm-content")).to_contain_text('"sku": "b"')
    document = json.loads(page.locator("textarea[name=params]").input_value())
    type_json(page, json.dumps({**document, "extra": {"kept": 1.10}}))
    expect(page.locator("#check")).to_contain_text("Not in the schema: extra")
    page.get_by_role("button", name="Form", exact=True).click()
    expect(page.get_by_label("Customer")).to_have_value("Ana")
    page.locator('button[value="remove:/items/0"]').click()
    expect(page.locator('[name="f./items/1/sku"]')).to_have_count(0)
    assert skus(page) == ["a"]
    assert json.loads(page.locator("input[name=params]").input_value())["extra"] == {"kept": 1.1}

    # Enter in a field only checks; a problem leads to its field; Ctrl+Enter starts.
    page.locator('[name="f./items/0/quantity"]').fill("0")
    page.keyboard.press("Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Fix 1 problem")
    alert.get_by_role("link", name="items/0/quantity").click()
    quantity = page.locator('[name="f./items/0/quantity"]')
    expect(quantity).to_be_focused()
    expect(quantity).to_have_attribute("aria-invalid", "true")
    quantity.fill("3")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/instances/**")
    expect(page.locator("main")).to_contain_text("Ana")


def test_a_list_is_filled_without_a_script(
    browser: Browser, session: StorageState, live_stack: LiveStack
) -> None:
    plain = browser.new_context(java_script_enabled=False, storage_state=session, base_url=live_stack.url)
    try:
        page = plain.new_page()
        page.goto(START)
        page.get_by_label("Customer").fill("Bo")
        page.locator('[name="f./items/0/sku"]').fill("first")
        page.locator('button[value="add:/items"]').click()
        page.locator('[name="f./items/1/sku"]').fill("second")
        page.locator('button[value="down:/items/0"]').click()
        assert skus(page) == ["second", "first"]
        page.locator('button[value="remove:/items/1"]').click()
        page.get_by_role("button", name="JSON", exact=True).click()
        assert '"sku": "second"' in page.locator("textarea[name=params]").input_value()
        page.get_by_role("button", name="Form", exact=True).click()
        page.get_by_role("button", name="Start process-order").click()
        expect(page).to_have_url(re.compile("/instances/"))
    finally:
        plain.close()


def test_a_template_is_saved_chosen_overwritten_and_deleted_by_keyboard(signed_in: Page) -> None:
    page = signed_in
    page.goto(START)
    page.get_by_label("Customer").fill("Ana")
    page.locator("#tags").fill("eu")
    page.get_by_text("Save as a template…").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("For Ana")
    page.keyboard.press("Enter")
    said = page.locator("#template-said")
    expect(said).to_be_focused()
    expect(said).to_have_text("Saved the template For Ana.")
    expect(page.locator("#tags")).to_have_value("eu")
    expect(page.locator("#template-name")).to_be_hidden()

    page.goto(START)
    page.get_by_role("link", name="For Ana").focus()
    page.keyboard.press("Enter")
    chosen = page.locator("#from-template")
    expect(chosen).to_contain_text("From the template For Ana")
    expect(page.get_by_label("Customer")).to_have_value("Ana")
    page.get_by_label("Customer").fill("Bo")
    page.get_by_role("button", name="Overwrite").focus()
    page.keyboard.press("Enter")
    expect(said).to_have_text("Overwrote the template For Ana with these parameters.")
    chosen.locator("summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Delete template")).to_be_focused()
    page.keyboard.press("Enter")
    expect(said).to_have_text("Deleted the template For Ana. The form is unchanged.")
    expect(page.get_by_label("Customer")).to_have_value("Bo")
    expect(chosen).to_have_count(0)


def test_a_template_is_saved_and_chosen_without_a_script(
    browser: Browser, session: StorageState, live_stack: LiveStack
) -> None:
    plain = browser.new_context(java_script_enabled=False, storage_state=session, base_url=live_stack.url)
    with closing(plain):
        page = plain.new_page()
        page.goto(START)
        page.get_by_label("Customer").fill("Cleo")
        page.get_by_text("Save as a template…").click()
        page.get_by_label("Name of the template").fill("For Cleo")
        page.get_by_role("button", name="Save template").click()
        expect(page.locator("#template-said")).to_have_text("Saved the template For Cleo.")
        expect(page.get_by_label("Customer")).to_have_value("Cleo")
        page.get_by_role("link", name="Clear").click()
        expect(page.get_by_label("Customer")).to_have_value("")
        page.get_by_role("link", name="For Cleo").click()
        expect(page.get_by_label("Customer")).to_have_value("Cleo")
        page.locator("#from-template summary").click()
        page.get_by_role("button", name="Delete template").click()
        expect(page.locator("#template-said")).to_contain_text("Deleted the template For Cleo.")


def test_a_time_is_typed_in_the_zone_of_the_browser_and_a_file_of_lines_is_read_there(
    browser: Browser, live_stack: LiveStack, session: StorageState
) -> None:
    context = browser.new_context(
        base_url=live_stack.url, storage_state=session, timezone_id="Asia/Kolkata", locale="en-GB"
    )
    with closing(context):
        page = context.new_page()
        page.goto("/workflows/tick/start/")
        local = datetime.now(ZoneInfo("Asia/Kolkata")) + timedelta(days=2)
        page.locator("#at").fill(local.strftime("%Y-%m-%dT%H:%M"))
        expect(page.locator('[name="at-zone"]')).to_have_value("+05:30")
        expect(page.locator("#check")).to_contain_text("Until then it is queued.")
        page.get_by_role("button", name="Start tick").click()
        expect(page.get_by_text(re.compile("Starts in 1 d 23 h"))).to_be_visible()

        page.goto(START)
        page.get_by_role("link", name="Start many").click()
        file = {"name": "orders.csv", "mimeType": "text/csv"}
        page.locator("#file").set_input_files([{**file, "buffer": "customer\nMüller".encode("latin-1")}])
        expect(page.locator("#file-problem")).to_contain_text("It is not UTF-8.")
        lines = 'id,customer,items\nfrom-a-file,Müller,"[{""sku"": ""a"", ""quantity"": 1}]"\n,Bo'
        page.locator("#file").set_input_files([{**file, "buffer": lines.encode()}])
        expect(page.locator("#text")).to_have_value(re.compile("from-a-file"))
        page.get_by_role("button", name="Preview").click()
        expect(page.locator("#preview")).to_contain_text("1 line refused")
        page.get_by_role("button", name="Start 1 of 2").click()
        expect(page.get_by_role("link", name="from-a-file")).to_be_visible()
