"""Right-to-left text that a user wrote changes the direction of nothing around it."""

import pytest

from engine.status.sentences.bidi import isolated, isolated_strings
from engine.status.sentences.sentence import quoted

OVERRIDE, FIRST_STRONG, LEFT_ISOLATE, END = "\u202e", "\u2068", "\u2066", "\u2069"
HEBREW = "שלום"


@pytest.mark.parametrize("text", ["", "a < b", "Grüße, 你好", "“quoted” – 5 €"])
def test_what_runs_from_left_to_right_stays_as_it_is(text: str) -> None:
    assert isolated(text) == text


@pytest.mark.parametrize("text", [HEBREW, f"evil {OVERRIDE}txt.exe"])
def test_what_may_turn_is_isolated(text: str) -> None:
    assert isolated(text) == f"{FIRST_STRONG}{text}{END}"


def test_a_value_cannot_close_the_isolate_around_it() -> None:
    assert isolated(f"a{END}{OVERRIDE}b") == f"{FIRST_STRONG}a{OVERRIDE}b{END}"


def test_what_a_value_leaves_open_is_closed() -> None:
    assert isolated(f"a{LEFT_ISOLATE}b") == f"{FIRST_STRONG}a{LEFT_ISOLATE}b{END}{END}"


def test_in_json_each_string_is_isolated_within_its_quotes() -> None:
    json = f'{{"{HEBREW}": 3, "b": "\\"{OVERRIDE}x", "c": "{HEBREW}'
    assert isolated_strings(json) == (
        f'{{"{FIRST_STRONG}{HEBREW}{END}": 3, "b": "{FIRST_STRONG}\\"{OVERRIDE}x{END}", '
        f'"c": "{FIRST_STRONG}{HEBREW}{END}'
    )
    assert isolated_strings('{"a": 1}') == '{"a": 1}'


def test_a_quotation_keeps_its_marks_in_place() -> None:
    assert quoted(HEBREW) == f"“{FIRST_STRONG}{HEBREW}{END}”"
