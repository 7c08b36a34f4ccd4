"""The tables of the guide that are made from the code are those of today's code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.configuration import SETTINGS
from tests.docs.made import checks, pages, settings


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_the_tables_of_a_page_are_those_of_the_code(page: Path) -> None:
    assert pages.made(page.read_text()) == page.read_text(), "run: python -m tests.docs.made"


def test_every_check_is_in_the_table() -> None:
    assert set(re.findall(r"^\| `(\S+)`", checks.checks(), re.MULTILINE)) == checks.ids_in_the_source()


def test_every_setting_is_in_the_table() -> None:
    assert re.findall(r"^\| `([A-Z_]+)`", settings.settings(), re.MULTILINE) == list(SETTINGS)


def test_every_table_is_on_a_page() -> None:
    shown = [name for page in pages.PAGES for name in pages.names(page.read_text())]
    assert sorted(shown) == sorted(pages.SECTIONS)
