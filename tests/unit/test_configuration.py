"""The dictionary REPRISE: a value that cannot be used is one sentence, and no sentence repeats a secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django.fixtures import Settings

from engine.configuration import problems, setting, usable

HUGE = 10**5000  # Python does not write it out


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("HOME", 3, "is 3: it takes the path of a folder."),
        ("HOME", "a\0b", "is 'a\\x00b': it takes the path of a folder."),
        ("LEASE", 10**400, f"is 1{99 * '0'}…: it takes a number of seconds from 1 to 86400."),
        pytest.param(
            "LEASE", HUGE, "is a large int: it takes a number of seconds from 1 to 86400.", id="huge"
        ),
        ("LEASE", 0.01, "is 0.01: it takes a number of seconds from 1 to 86400."),
        ("LEASE", True, "is True: it takes a number of seconds from 1 to 86400."),
        ("LEASE", "nan", "is 'nan': it takes a number of seconds from 1 to 86400."),
        pytest.param("SLOTS", HUGE, "is a large int: it takes a whole number from 1 to 10000.", id="slots"),
        ("SLOTS", "9" * 5000, f"is '{99 * '9'}…: it takes a whole number from 1 to 10000."),
        ("SLOTS", True, "is True: it takes a whole number from 1 to 10000."),
        (
            "MODULES",
            ["shop", ""],
            "is ['shop', '']: it takes a list of names of modules, such as shop.orders.",
        ),
        ("MODULES", [".shop"], "is ['.shop']: it takes a list of names of modules, such as shop.orders."),
        ("SECRET_KEYS", {"s3cret-canary"}, ": it takes a list of strings."),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_what_it_takes(
    settings: Settings, name: str, value: object, sentence: str
) -> None:
    settings.REPRISE = {name: value}
    separator = "" if sentence.startswith(":") else " "
    assert list(problems()) == [f'REPRISE["{name}"]{separator}{sentence}']
    with pytest.raises(ImproperlyConfigured):
        setting(name)


@pytest.mark.parametrize(
    "origin",
    [
        *("http://[abc", "http://a:x", "http://a:99999", "http://a:0", "http://", "a", ""),
        *(
            "http://a/path",
            "http://a?q=1",
            "http://a#f",
            "http://me@a",
            "http://*.a",
            "http://a b",
            "http://a\n",
        ),
    ],
)
def test_what_is_no_origin_is_refused(settings: Settings, origin: str) -> None:
    settings.REPRISE = {"ORIGINS": [origin]}
    (said,) = problems()
    assert "it takes a list of origins" in said


def test_what_can_be_used_is_used(settings: Settings) -> None:
    settings.REPRISE = {
        "HOME": "here",
        "LEASE": "1.5",
        "SLOTS": " 7 ",
        "ORIGINS": "https://a, http://[::1]:8000",
        "MODULES": ["shop.orders"],
    }
    assert list(problems()) == []
    assert [setting(name) for name in settings.REPRISE] == [
        Path("here"),
        1.5,
        7,
        ["https://a", "http://[::1]:8000"],
        ["shop.orders"],
    ]


def test_what_is_not_a_dictionary_is_named_without_what_it_contains(settings: Settings) -> None:
    settings.REPRISE = [("SECRET_KEYS", "s3cret-canary")]
    assert list(problems()) == ["REPRISE is a list: it takes a dictionary."]
    assert usable("SLOTS") == 64
