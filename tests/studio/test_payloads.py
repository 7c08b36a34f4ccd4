"""Values are shown as they are stored."""

from __future__ import annotations

import json

from django.utils.html import escape

from studio import payloads
from studio.templatetags.studio_tags import tree


def test_numbers_keep_every_digit() -> None:
    shown = tree(payloads.payload("x", '{"big": 9007199254740993, "float": 1e16}'))
    assert "9007199254740993" in shown
    assert "1e+16" in shown


def test_markup_in_keys_and_values_is_text() -> None:
    evil = "<img src=x onerror=alert(1)>"
    shown = tree(payloads.payload("x", json.dumps({evil: [evil]})))
    assert "<img" not in shown
    assert shown.count(escape(evil)[:8]) == 2


def test_large_lists_start_folded_and_small_ones_open() -> None:
    many = tree(payloads.payload("x", json.dumps({"few": [1], "many": list(range(21))})))
    assert many.count("<details open>") == 1
    assert many.count("<details>") == 1


def test_a_large_value_shows_its_beginning() -> None:
    text = json.dumps("x" * 100_000)
    shown = payloads.payload("x", text)
    assert (shown.is_cut, len(shown.text), shown.size) == (True, payloads.CUT_AT, len(text))


def test_very_many_values_are_not_drawn_as_a_tree() -> None:
    shown = payloads.payload("x", json.dumps([[]] * 5_000))
    assert shown.tree is None
    assert shown.is_cut


def test_what_cannot_be_read_is_said_so() -> None:
    shown = payloads.payload("x", "1" * 5_000)
    assert shown.problem.startswith("This value cannot be read")


def test_a_preview_is_one_short_line() -> None:
    assert payloads.preview('{\n  "a":   1\n}') == '{ "a": 1 }'
    assert len(payloads.preview("x" * 500)) == 80
