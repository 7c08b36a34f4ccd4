"""The search of instances: suggestions by keyboard, chips, order, columns, live rows, and no JavaScript."""

from __future__ import annotations

import re
from contextlib import closing
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.test_calm import COUNT_SHIFTS, LARGEST_SHIFT, shift
from tests.browser.test_journey import live
from tests.live import LiveStack

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.second_tier]

START = "from tests.sample.workflows import nap\nfor n in {range}: nap.start({{'seconds': {seconds} + n}}, id=f'{id}')"
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.fixture(scope="session", autouse=True)  # a process may come back to this module
def _naps(live_stack: LiveStack) -> None:
    start(live_stack, ids="search-{n}", count=3)


def start(stack: LiveStack, *, ids: str, count: int = 1, seconds: int = 40_000) -> None:
    stack.django(START.format(range=f"range({count})", seconds=seconds, id=ids))


def searched(page: Page) -> dict[str, str]:
    """Return the parameters of the address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def options(page: Page) -> list[str]:
    return page.locator("#suggestions [role=option] .mono").all_inner_texts()


def test_a_search_is_completed_and_sent_by_keyboard(signed_in: Page) -> None:
    page = signed_in
    page.goto("/instances/")
    page.keyboard.press("/")
    field = page.get_by_role("combobox", name="Search instances")
    expect(field).to_be_focused()
    expect(page.get_by_role("listbox")).to_be_visible()
    assert options(page)[:2] == ["workflow:", "status:"]

    page.keyboard.type("work")
    expect(page.locator("[role=option]")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option", name="workflow:")).to_have_attribute("aria-selected", "true")
    expect(field).to_have_attribute("aria-activedescendant", "suggestion-1")
    page.keyboard.press("Enter")
    expect(field).to_have_value("workflow:")

    # Its values follow at once; Tab takes one, too.
    expect(page.get_by_role("option", name="nap", exact=True)).to_be_visible()
    page.keyboard.type("na")
    expect(page.locator("[role=option]")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    expect(field).to_have_value("workflow:nap ")
    expect(field).to_be_focused()
    expect(page.get_by_role("listbox")).to_have_count(0)

    page.keyboard.type("params.sec")
    expect(page.get_by_role("option", name="params.seconds=")).to_be_visible()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(field).to_have_value("workflow:nap params.seconds=")
    page.keyboard.type("40001")
    page.keyboard.press("Escape")
    expect(field).to_have_value("workflow:nap params.seconds=40001")
    page.keyboard.press("Enter")
    page.wait_for_url("**/instances/?query=*")
    assert searched(page) == {"query": "workflow:nap params.seconds=40001"}
    expect(page.locator(".terms .term")).to_have_text(
        [re.compile("workflow is nap"), re.compile("params.seconds is 40001")]
    )
    expect(page.locator("#list tbody td.id")).to_have_text(["search-1"])


def test_escape_closes_the_suggestions_and_keeps_the_text(signed_in: Page) -> None:
    page = signed_in
    page.goto("/instances/?query=workflow:nap")
    page.click("#query")
    page.keyboard.press("End")
    page.keyboard.type(" 🛒 sta")
    expect(page.get_by_role("option", name="status:")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_have_count(0)
    expect(page.locator("#query")).to_have_value("workflow:nap 🛒 sta")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option", name="status:")).to_be_visible()
    page.get_by_role("option", name="status:").click()
    expect(page.locator("#query")).to_have_value("workflow:nap 🛒 status:")
    page.mouse.click(700, 600)
    expect(page.get_by_role("listbox")).to_have_count(0)


def test_terms_are_dropped_by_their_chips(signed_in: Page) -> None:
    page = signed_in
    page.goto("/instances/?query=workflow:nap+id:search-2+-status:complete")
    expect(page.locator("#list tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Remove ID begins with “search-2”").click()
    assert searched(page) == {"query": "workflow:nap -status:complete"}
    page.get_by_role("link", name="Clear").click()
    assert urlsplit(page.url).query == ""


def test_the_time_window_is_a_menu(signed_in: Page) -> None:
    page = signed_in
    page.goto("/instances/?query=workflow:nap")
    page.locator("summary", has_text="All time").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Last 7 days")).to_be_hidden()
    page.locator("summary", has_text="All time").click()
    page.get_by_role("link", name="Last 7 days").click()
    assert searched(page) == {"query": "workflow:nap started:<7d"}
    expect(page.locator("summary", has_text="Last 7 days")).to_be_visible()


def test_heads_sort_the_list(signed_in: Page) -> None:
    page = signed_in
    page.goto("/instances/?query=workflow:nap+id:search-")
    head = page.get_by_role("columnheader", name="Started")
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(page.locator("#list tbody td.id")).to_have_text(["search-2", "search-1", "search-0"])
    head.get_by_role("link").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(page.locator("#list tbody td.id")).to_have_text(["search-0", "search-1", "search-2"])
    assert searched(page) == {"query": "workflow:nap id:search-", "sort": "started"}


def test_a_value_becomes_a_column(signed_in: Page) -> None:
    page = signed_in
    page.goto("/instances/?query=workflow:nap+id:search-")
    page.locator("summary", has_text="Columns").click()
    page.get_by_role("link", name="params.seconds").click()
    expect(page.get_by_role("columnheader", name="seconds")).to_be_visible()
    expect(page.locator("#list td.added")).to_have_text(["40002", "40001", "40000"])

    # A path that no instance has may be typed; both stay while one searches on.
    page.locator("summary", has_text="Columns").click()
    page.fill("#column", "output.none")
    page.get_by_role("button", name="Add").click()
    expect(page.locator("#list thead th.added")).to_have_count(2)
    page.fill("#query", "id:search-1")
    page.keyboard.press("Enter")
    expect(page.locator("#list td.added")).to_have_text(["40001", ""])
    page.locator("summary", has_text="Columns").click()
    page.get_by_role("link", name="Remove the column output.none").click()
    assert searched(page) == {"query": "id:search-1", "columns": "params.seconds"}


def test_rows_follow_in_place_and_new_ones_are_only_announced(signed_in: Page, live_stack: LiveStack) -> None:
    start(live_stack, ids="follow-0", seconds=50_000)
    page = signed_in
    page.goto("/instances/?query=id:follow-&columns=params.seconds")
    live(page)
    row = page.locator("#list tbody tr").first
    expect(row.locator(".chip")).to_have_text("sleeping")
    start(live_stack, ids="other-0", seconds=60_000)
    start(live_stack, ids="follow-1", seconds=60_000)
    expect(page.locator("#more")).to_contain_text("1 new · show")
    live_stack.django(
        "from tests.sample.workflows import nap\nnap.get('follow-0').terminate(reason='a test')"
    )
    expect(row.locator(".chip")).to_have_text("terminated")
    expect(row.locator("td.added")).to_have_text("50000")
    expect(page.locator("#list tbody tr")).to_have_count(1)
    page.get_by_role("link", name="1 new · show").click()
    expect(page.locator("#list tbody td.id")).to_have_text(["follow-1", "follow-0"])
    assert searched(page) == {"query": "id:follow-", "columns": "params.seconds"}


def test_a_wrong_term_says_what_to_write(signed_in: Page) -> None:
    page = signed_in
    page.goto("/instances/?query=workflow:nap+status:compleet")
    expect(page.get_by_role("alert")).to_contain_text("Not searched: fix 1 term")
    expect(page.get_by_role("alert")).to_contain_text('Did you mean "complete"?')
    page.get_by_role("alert").get_by_role("link", name="Remove it").click()
    expect(page.locator("#list")).to_be_visible()
    assert searched(page) == {"query": "workflow:nap"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_shows_cards_and_everything_can_be_pressed(signed_in: Page, theme: str) -> None:
    page = signed_in
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/instances/?query=workflow:nap+status:open+started:<30d+duration:<300d&columns=params.seconds")
    card = page.locator("#list tbody tr", has_text="search-1")
    expect(card).to_contain_text("40001")
    assert page.evaluate(FITS)
    for part, least in ((".finder .button", 44), (".find input", 44), (".term > a", 24), (".strip a", 24)):
        for box in (one.bounding_box() for one in page.locator(part).all()):
            assert box is not None
            assert min(box["height"], box["width"]) >= least, part
    for menu in page.locator("details.menu > summary").all():
        menu.click()
        assert page.evaluate(FITS)
    page.locator("summary", has_text="Sort").click()
    page.locator(".sorts").get_by_role("link", name="Started").click()
    assert searched(page)["sort"] == "started"


def test_nothing_moves_while_somebody_types(signed_in: Page) -> None:
    page = signed_in
    page.add_init_script(COUNT_SHIFTS)
    page.goto("/instances/?query=workflow:nap&columns=params.seconds")
    live(page)
    page.click("#query")
    page.keyboard.press("End")
    page.keyboard.type(" params.")
    expect(page.get_by_role("option", name="params.seconds=")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("summary", has_text="Columns").click()
    expect(page.locator(".paths")).not_to_be_empty()
    assert shift(page) <= LARGEST_SHIFT


def test_the_search_works_without_javascript(
    browser: Browser, live_stack: LiveStack, session: StorageState
) -> None:
    plain = browser.new_context(java_script_enabled=False, storage_state=session, base_url=live_stack.url)
    with closing(plain):
        page = plain.new_page()
        page.goto("/instances/?sort=started&columns=params.seconds")
        page.fill("#query", "workflow:nap id:search-")
        page.get_by_role("button", name="Search").click()
        expect(page.locator("#list td.added")).to_have_text(["40000", "40001", "40002"])
        assert searched(page) == {
            "query": "workflow:nap id:search-",
            "sort": "started",
            "columns": "params.seconds",
        }
        page.locator("summary", has_text="All time").click()
        page.get_by_role("link", name="Last 24 h").click()
        expect(page.locator(".terms .term")).to_have_count(3)
