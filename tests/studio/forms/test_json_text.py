"""A wrong field is marked where it is in the text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.forms import json_text

TEXT = '{\n  "a": 1,\n  "items": [\n    {"sku": "x\\"y", "n": [10, 20]},\n    {"sku": "z"}\n  ]\n}'


@pytest.mark.parametrize(
    ("path", "marked"),
    [
        ([], TEXT),
        (["a"], "1"),
        (["items", "0", "sku"], '"x\\"y"'),
        (["items", "0", "n", "1"], "20"),
        (["items", "1"], '{"sku": "z"}'),
        (["items", "1", "missing"], "{"),
        (["missing"], "{"),
        (["items", "7"], "["),
    ],
)
def test_a_path_leads_to_its_place(path: list[str], marked: str) -> None:
    place = json_text.find(TEXT, path)
    assert TEXT[place.start : place.end] == marked


def test_lines_and_columns_count_from_one() -> None:
    place = json_text.find(TEXT, ["items", "1", "sku"])
    assert json_text.line_and_column(TEXT, place.start) == (5, 13)


def test_offsets_for_the_browser_count_its_way() -> None:
    text = '{"😀": "ä", "b": 2}'
    place = json_text.find(text, ["b"])
    assert json_text.utf16(text, place.start) == place.start + 1


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(values, st.sampled_from([None, 2]), st.data())
def test_every_value_is_found_where_it_stands(value: object, indent: int | None, data: st.DataObject) -> None:
    text = json.dumps(value, indent=indent)
    path: list[str] = []
    while isinstance(value, dict | list) and value and data.draw(st.booleans()):
        if isinstance(value, dict):
            key = data.draw(st.sampled_from(sorted(value)))
            path, value = [*path, key], value[key]
        else:
            index = data.draw(st.integers(0, len(value) - 1))
            path, value = [*path, str(index)], value[index]
    place = json_text.find(text, path)
    assert json.loads(text[place.start : place.end]) == value
