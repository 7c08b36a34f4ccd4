"""What an address may ask of a list, and how one is written."""

from __future__ import annotations

import pytest
from django.http import QueryDict

from engine.values.shown import OPEN, SHOWN, display_status, stored
from studio.frame.addresses import cursor, keys
from studio.instances.address import ListAddress, list_address


@pytest.mark.parametrize("text", ["-1", "", "abc", "9" * 20, "1.5", " 7", "٣", "0x10"])
def test_a_cursor_that_is_none_is_ignored(text: str) -> None:
    assert cursor(text) is None


def test_keys_are_read_up_to_a_limit() -> None:
    assert keys("1,2,x,-3,4", 100) == [1, 2, 4]
    assert len(keys(",".join(["7"] * 500), 100)) == 100


def test_an_address_is_written_back_with_changes() -> None:
    given = "query=tag:eu+params.a%3D%22b c%22&sort=started&columns=params.a&columns=output.b&order=password"
    asked = ListAddress.of(QueryDict(given))
    assert asked.url() == (
        "/instances/?query=tag:eu+params.a%3D%22b+c%22&sort=started&columns=params.a,output.b"
    )
    assert asked.url(query="", sort="") == "/instances/?columns=params.a,output.b"
    assert ListAddress.of(QueryDict(asked.url().partition("?")[2])).parameters == asked.parameters


def test_links_to_lists_are_searches() -> None:
    assert list_address() == "/instances/"
    assert list_address(workflow="orders") == "/instances/?query=workflow:orders"
    assert list_address(workflow="orders", status="open") == "/instances/?query=workflow:orders+status:open"


def test_every_shown_status_covers_what_is_stored_and_nothing_twice() -> None:
    pairs = [pair for name in SHOWN for pair in stored(name)]
    assert len(pairs) == len(set(pairs))
    for status, waiting_for in pairs:
        assert status in {s for s, _ in stored(display_status(status, waiting_for or ""))}
    assert set(stored("open")) == {pair for name in OPEN for pair in stored(name)}
