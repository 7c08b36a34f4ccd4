"""The tables of the guide that are made from the code are those of today's code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.configuration import SETTINGS
from tests.docs import made
from tests.docs.pages import PROJECT


@pytest.mark.parametrize("page", made.PAGES, ids=lambda page: page.name)
def test_the_tables_of_a_page_are_those_of_the_code(page: Path) -> None:
    assert made.made(page.read_text()) == page.read_text(), "run: python -m tests.docs.made"


def test_every_check_is_in_the_table() -> None:
    assert set(re.findall(r"^\| `(\S+)`", made.checks(), re.MULTILINE)) == made.ids_in_the_source()


def test_every_setting_is_in_the_table() -> None:
    assert re.findall(r"^\| `([A-Z_]+)`", made.settings(), re.MULTILINE) == list(SETTINGS)


def test_every_variable_that_the_code_reads_is_on_the_page_of_settings() -> None:
    folder = PROJECT / "studio" / "environment"
    source = "".join(file.read_text() for file in [*folder.glob("*.py"), PROJECT / "studio/settings.py"])
    read = set(
        re.findall(
            r'"((?:REPRISE_[A-Z_]+|DATABASE_URL|SECRET_KEY\w*|ALLOWED_HOSTS|DEBUG|HOST|PORT))"', source
        )
    )
    page = (PROJECT / "docs" / "settings.md").read_text()
    assert sorted(name for name in read if f"`{name}`" not in page) == []
