"""Values are shown as they are stored."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.utils.html import escape

from engine.values.serialization import read_beginning
from studio.display import payloads
from studio.templatetags.studio_tags import tree
from tests.studio import factories


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


def test_a_large_text_shows_its_beginning() -> None:
    text = json.dumps("x" * 300_000)
    shown = payloads.payload("x", text)
    assert (shown.is_cut, len(shown.text), shown.size) == (True, payloads.CUT_AT, len(text))


def test_of_many_items_the_first_are_drawn_and_the_others_counted() -> None:
    shown = payloads.payload("x", json.dumps({"rows": list(range(1_334))}))
    drawn = tree(shown)
    assert shown.is_cut
    assert '<span class="a">99</span>' in drawn
    assert '<span class="a">100</span>' not in drawn
    assert "1,334 items" in drawn
    assert "… 1,234 more" in drawn


def test_very_many_values_are_drawn_as_far_as_a_page_goes() -> None:
    drawn = tree(payloads.payload("x", json.dumps([[[1] * 90] * 90] * 90)))
    assert drawn.count("<li>") < payloads.NODES
    assert "more</li>" in drawn


def test_the_beginning_of_a_value_is_a_tree_too() -> None:
    text = json.dumps({"name": "load", "rows": [{"id": n, "note": 'a "b" \\ ü'} for n in range(20_000)]})
    shown = payloads.payload("x", text[:9_000], len(text), full_up_to=8_000)
    drawn = tree(shown)
    assert shown.is_cut
    assert '<span class="k">name</span>: <span class="s">&quot;load&quot;</span>' in drawn
    assert "more than 100 items" in drawn
    assert drawn.count("… more") == 2


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, {"b": 'q"\\ü😀'}], "c": {}, "d": [[], [[]]], "long": "😀" * 9},
        ["\\" * 9, {"k\\": 'x"'}, -1.5e9, None, True],
    ],
)
def test_wherever_a_text_is_cut_its_beginning_can_be_read(value: object) -> None:
    text = json.dumps(value)
    for end in range(1, len(text)):
        found = read_beginning(text[:end])
        assert found is not None
        read, _ = found
        json.dumps(read, ensure_ascii=False).encode()
        assert isinstance(read, type(value))


def test_what_is_cut_is_copied_from_its_address(operator: Client) -> None:
    instance = factories.instance("complete", output=list(range(5_000)))
    page = operator.get(f"{instance.get_absolute_url()}?step=result").content.decode()
    address = f"{instance.get_absolute_url()}payload/output/"
    assert f'data-copy-address="{address}"' in page
    assert "… 4,900 more" in page


def test_what_cannot_be_read_is_said_so() -> None:
    shown = payloads.payload("x", "1" * 5_000)
    assert shown.problem.startswith("This value cannot be read")


def test_a_preview_is_one_short_line() -> None:
    assert payloads.preview('{\n  "a":   1\n}') == '{ "a": 1 }'
    assert len(payloads.preview("x" * 500)) == 80
