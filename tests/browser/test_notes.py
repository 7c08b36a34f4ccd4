"""Notes in a browser: by key, live in another tab, inert, without JavaScript, on a phone, and calm."""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import Browser, Locator, Page, StorageState, expect

from tests.browser.test_calm import COUNT_SHIFTS, LARGEST_SHIFT, shift
from tests.browser.test_journey import NewTab, live
from tests.browser.test_search import FITS, start
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

LATEST = "#notes > li:first-child .text"


@pytest.fixture(scope="session", autouse=True)  # a process may come back to this module
def _naps(live_stack: LiveStack) -> None:
    start(live_stack, ids="noted-{n}", count=6, seconds=50_000)


def open_nap(page: Page, n: int) -> None:
    page.goto(f"/workflows/nap/instances/noted-{n}/")
    live(page)


def top(found: Locator) -> float:
    box = found.bounding_box()
    assert box
    return box["y"]


def post(page: Page, text: str) -> None:
    page.locator("#note-text").fill(text)
    with page.expect_navigation():
        page.get_by_role("button", name="Post").click()
    expect(page.locator("#flash")).to_contain_text("Added your note.")


def test_a_note_is_written_by_keyboard_and_appears_in_another_tab(signed_in: Page, new_tab: NewTab) -> None:
    page, other = signed_in, new_tab()
    open_nap(page, 0)
    open_nap(other, 0)
    other.evaluate("window.isSame = true")
    page.keyboard.press("n")
    field = page.get_by_role("textbox", name="Add a note")
    expect(field).to_be_focused()
    expect(field).to_have_value("")  # the key itself is not typed
    page.keyboard.type("Called the shop, ask @admin.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    for tab in (page, other):
        expect(tab.locator(LATEST)).to_have_text("Called the shop, ask @admin.")
        expect(tab.locator("#notes mark.mention")).to_have_text("@admin")
    assert other.evaluate("window.isSame")  # it was not loaded again
    expect(page.locator("#note-text")).to_have_value("")


def test_markup_in_a_note_is_inert(signed_in: Page, new_tab: NewTab) -> None:
    page, other = signed_in, new_tab()
    open_nap(other, 1)
    open_nap(page, 1)
    text = (
        '<img src=x onerror="window.ran = 1"><script>window.ran = 1</script> **no** https://shop.example/1.'
    )
    post(page, text)
    for tab in (page, other):
        expect(tab.locator(LATEST)).to_have_text(text)
        expect(tab.locator("#notes :is(img, script, b)")).to_have_count(0)
        expect(tab.locator("#notes a")).to_have_attribute("href", "https://shop.example/1")
        assert tab.evaluate("window.ran === undefined")


def test_a_note_is_posted_without_javascript(
    browser: Browser, live_stack: LiveStack, session: StorageState
) -> None:
    plain = browser.new_context(java_script_enabled=False, storage_state=session, base_url=live_stack.url)
    with closing(plain):
        page = plain.new_page()
        page.goto("/workflows/nap/instances/noted-2/")
        post(page, "Plain as it is.")
        expect(page.locator(LATEST)).to_have_text("Plain as it is.")


def test_long_notes_fit_a_phone(signed_in: Page) -> None:
    page = signed_in
    open_nap(page, 3)
    for text in ("w" * 300, "a line\n" * 40, "https://shop.example/" + "x" * 200):
        post(page, text)
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 844})
        open_nap(page, 3)
        expect(page.locator("#notes > li")).to_have_count(3)
        assert page.evaluate(FITS), width


@pytest.mark.parametrize(("width", "n"), [(390, 4), (1440, 5)])
def test_a_note_that_arrives_moves_neither_the_field_nor_what_is_read(
    signed_in: Page, new_tab: NewTab, width: int, n: int
) -> None:
    page, other = signed_in, new_tab()
    page.set_viewport_size({"width": width, "height": 500})
    open_nap(page, n)
    open_nap(other, n)
    field = page.locator("#note-text")
    field.press_sequentially("half a ")
    before = field.bounding_box()
    post(other, "They have sent it.")
    expect(page.locator(LATEST)).to_have_text("They have sent it.")
    assert field.bounding_box() == before
    expect(field).to_be_focused()
    expect(field).to_have_value("half a ")

    field.blur()
    steps = page.locator("#steps")
    steps.evaluate("(steps) => steps.scrollIntoView()")
    page.wait_for_timeout(300)
    read_at = top(steps)
    post(other, "It has arrived.")
    expect(page.locator(LATEST)).to_have_text("It has arrived.")
    page.wait_for_timeout(600)
    assert abs(top(steps) - read_at) < 1
    field.fill("")


def test_a_page_with_notes_loads_calmly(signed_in: Page) -> None:
    page = signed_in
    page.add_init_script(COUNT_SHIFTS)
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        open_nap(page, 3)
        page.wait_for_timeout(600)
        assert shift(page) <= LARGEST_SHIFT


def test_a_name_is_completed_by_keyboard(signed_in: Page, live_stack: LiveStack) -> None:
    live_stack.django(
        "from django.contrib.auth.models import Group, User\n"
        "for name in ('zelda', 'zoe', 'zack'):\n"
        "    user = User.objects.create_user(name, first_name='<i>Z</i>', is_active=name != 'zack')\n"
        "    user.groups.add(Group.objects.get(name='reprise-viewer'))"
    )
    page = signed_in
    open_nap(page, 1)
    page.keyboard.press("n")
    field = page.locator("#note-text")
    page.keyboard.type("mail a@z.example, ask @z")
    options = page.get_by_role("listbox", name="People to mention").get_by_role("option")
    expect(options).to_have_text(["@zelda <i>Z</i>", "@zoe <i>Z</i>"])
    expect(field).to_have_attribute("aria-activedescendant", "person-1")
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(field).to_have_value("mail a@z.example, ask @zoe ")
    expect(options).to_have_count(0)
    page.keyboard.type("and @zel")
    expect(options).to_have_count(1)
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    page.keyboard.type("d")
    options.click()
    expect(field).to_have_value("mail a@z.example, ask @zoe and @zelda ")
    expect(field).to_be_focused()
    page.set_viewport_size({"width": 390, "height": 844})
    page.keyboard.type("@")
    expect(options.first).to_be_visible()
    assert page.evaluate(FITS)
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#notes > li:first-child mark")).to_have_text(["@zoe", "@zelda"])
