"""What a page isolates is isolated by elements, and characters that nobody sees are written out in JSON."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from studio.display.invisible import visible
from studio.display.isolation import with_elements
from tests.studio import factories

HEBREW, OVERRIDE = "שלום", "\u202e"
FSI, LRI, PDI = "\u2068", "\u2066", "\u2069"


def test_an_isolate_in_the_text_becomes_an_element() -> None:
    assert with_elements(f"<p>by {FSI}{HEBREW}{PDI}.</p>") == f"<p>by <bdi>{HEBREW}</bdi>.</p>"


def test_isolates_inside_a_value_stay_part_of_it() -> None:
    inner = f"a{LRI}b{PDI}{FSI}c{PDI}"
    once = with_elements(f"<b>{FSI}{inner}{PDI}</b>")
    assert once == f"<b><bdi>{inner}</bdi></b>"
    assert with_elements(once) == once  # a piece that is put into a page


@pytest.mark.parametrize(
    "html",
    [
        f'<a title="{FSI}{HEBREW}{PDI}">x</a>',
        f"<textarea name=t>{FSI}{HEBREW}{PDI}</textarea>",
        f"<title>{FSI}{HEBREW}{PDI}</title>",
        f"<p>no end {FSI}{HEBREW}</p>",
    ],
)
def test_where_no_element_can_be_the_characters_stay(html: str) -> None:
    assert with_elements(html) == html


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (f"a{OVERRIDE}b", "a\\u202eb"),
        ("a\u200bb\ufeff\u0085\u2028\x7f", "a\\u200bb\\ufeff\\u0085\\u2028\\u007f"),
        ("a\u200db", "a\\u200db"),
        ("\U000e0041", "\\udb40\\udc41"),
        (f"{HEBREW} Grüße 你好 \n\t", f"{HEBREW} Grüße 你好 \n\t"),
        ("می\u200cخواهم 👩\u200d🔬", "می\u200cخواهم 👩\u200d🔬"),
    ],
)
def test_what_nobody_sees_is_written_as_an_escape_that_json_reads_back(text: str, seen: str) -> None:
    assert visible(text) == seen
    assert json.loads(f'"{visible(text)}"', strict=False) == text


@pytest.mark.django_db
def test_a_value_is_shown_exactly_and_copied_as_it_is(operator: Client) -> None:
    value = f"a{OVERRIDE}txt.exe"
    instance = factories.instance(params={"name": value, f"k{OVERRIDE}": HEBREW}, tags=[HEBREW])
    page = operator.get(f"{instance.get_absolute_url()}?step=start").content.decode()
    assert "&quot;a\\u202etxt.exe&quot;" in page
    assert '<span class="k">k\\u202e</span>' in page
    assert f"&quot;<bdi>{HEBREW}</bdi>&quot;" in page
    assert f'<span class="tag"><bdi>{HEBREW}</bdi></span>' in page
    assert f'data-copy="{{\n  &quot;name&quot;: &quot;{value}&quot;' in page
