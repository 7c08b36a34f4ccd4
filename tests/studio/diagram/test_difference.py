"""Two versions of a handler are compared line by line, within a limit."""

from __future__ import annotations

import random
import time

import pytest

from studio.diagram.difference import Difference, difference

MANY = 5_000


def told(found: Difference, old: list[str], new: list[str]) -> str:
    """Return the difference as a text, after checking that each line is in it once and equal ones are equal."""
    said, x, y = list[str](), 0, 0
    for one in found.stretches:
        assert (one.old.start, one.new.start) == (x, y)
        x, y = one.old.stop, one.new.stop
        if one.is_equal:
            assert [old[at].rstrip() for at in one.old] == [new[at].rstrip() for at in one.new]
            said += [f" {old[at]}" for at in one.old]
        else:
            said += [f"-{old[at]}" for at in one.old] + [f"+{new[at]}" for at in one.new]
    assert (x, y) == (len(old), len(new))
    return " ".join(said)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a b c", "a b c", " a  b  c"),
        ("a b c", "a x c", " a -b +x  c"),
        ("a b c", "a c", " a -b  c"),
        ("b", "a b c", "+a  b +c"),
        ("", "a", "+a"),
        ("a", "", "-a"),
        ("", "", ""),
        ("a a a b", "a a b", " a  a -a  b"),
        ("f x x g x x", "g x x f x x", "+g +x +x  f  x  x -g -x -x"),
    ],
)
def test_what_is_in_both_is_matched(old: str, new: str, expected: str) -> None:
    found = difference(old.split(), new.split())
    assert told(found, old.split(), new.split()) == expected
    assert found.is_matched


def test_blanks_at_the_end_of_a_line_do_not_count() -> None:
    assert difference(["a ", "b"], ["a", "b\t"]).added == []


def test_any_two_texts_have_a_difference() -> None:
    chance = random.Random(1)
    for _ in range(2_000):
        old, new = ([chance.choice("abcd") for _ in range(chance.randint(0, 12))] for _ in range(2))
        told(difference(old, new), old, new)


@pytest.mark.parametrize(
    "kind", ["equal", "other", "turned", "chance", "every tenth", "one line", "repeated"]
)
def test_thousands_of_lines_take_a_bounded_time(kind: str) -> None:
    chance = random.Random(1)
    old = [f"line {n}" for n in range(MANY)]
    new = {
        "equal": lambda: old[:],
        "other": lambda: [f"other {n}" for n in range(MANY)],
        "turned": lambda: old[::-1],
        "chance": lambda: [chance.choice(old) for _ in range(MANY)],
        "every tenth": lambda: [line if n % 10 else "changed" for n, line in enumerate(old)],
        "one line": lambda: ["same"] * MANY,
        "repeated": lambda: [f"line {n % 199}" for n in range(MANY)],
    }[kind]()
    if kind == "one line":
        old = ["first", *["same"] * (MANY - 1000)]
    if kind == "repeated":
        old = [f"line {n % 200}" for n in range(MANY)]
    began = time.thread_time()
    found = difference(old, new)
    assert time.thread_time() - began < 1  # a tenth of that on an idle machine
    told(found, old, new)
    assert len(found.added) == {"equal": 0, "every tenth": 500}.get(kind, len(found.added))


def test_a_search_that_takes_too_long_is_given_up_and_says_so() -> None:
    chance = random.Random(1)
    old, new = ([chance.choice("abcdef") for _ in range(MANY)] for _ in range(2))
    found = difference(old, new)
    assert not found.is_matched
    told(found, old, new)
