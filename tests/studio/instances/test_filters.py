"""What an address may ask of a list."""

from __future__ import annotations

import pytest

from engine.values.shown import OPEN, display_status, stored
from studio.display.status import LOOKS
from studio.frame.addresses import cursor, keys
from studio.instances.filters import Filter


@pytest.mark.parametrize("text", ["-1", "", "abc", "9" * 20, "1.5", " 7", "٣", "0x10"])
def test_a_cursor_that_is_none_is_ignored(text: str) -> None:
    assert cursor(text) is None


def test_keys_are_read_up_to_a_limit() -> None:
    assert keys("1,2,x,-3,4", 100) == [1, 2, 4]
    assert len(keys(",".join(["7"] * 500), 100)) == 100


@pytest.mark.parametrize("status", ["nonsense", "password", "running'", "RUNNING", "approvals"])
def test_an_unknown_status_is_no_filter(status: str) -> None:
    assert Filter.of({"status": status}).status == ""


@pytest.mark.parametrize("q", ["a b", "<script>", "%", "a\0b", "^(a+)+$", "("])
def test_what_begins_no_id_finds_nothing(q: str) -> None:
    assert Filter.of({"q": q}).is_impossible


def test_a_filter_is_written_back_with_changes() -> None:
    wanted = Filter.of({"workflow": "orders", "status": "errored", "order": "password"})
    assert wanted.query(status="open") == "?workflow=orders&status=open"
    assert Filter().query() == "?"


def test_every_shown_status_covers_what_is_stored_and_nothing_twice() -> None:
    pairs = [pair for name in LOOKS for pair in stored(name)]
    assert len(pairs) == len(set(pairs))
    for status, waiting_for in pairs:
        assert status in {s for s, _ in stored(display_status(status, waiting_for or ""))}
    assert set(stored("open")) == {pair for name in OPEN for pair in stored(name)}
