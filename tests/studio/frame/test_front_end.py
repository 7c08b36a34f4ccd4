"""Templates, styles and scripts are code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

LONGEST_LINE = 120


def _sources() -> Iterator[Path]:
    root = Path(settings.BASE_DIR)
    for pattern in ("*.css", "*.js"):
        found = (root / "static" / "studio").rglob(pattern)
        yield from (path for path in found if "vendor" not in path.parts)


def _templates() -> Iterator[Path]:
    root = Path(settings.BASE_DIR)
    for directory in ("templates", "studio", "engine"):
        yield from (root / directory).rglob("*.html")


def test_no_line_is_too_long() -> None:
    lines = [
        (path.name, number)
        for path in (*_sources(), *_templates())
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if len(line) > LONGEST_LINE
    ]
    assert lines == []


def test_every_style_and_script_is_on_a_page() -> None:
    root = Path(settings.BASE_DIR)
    pages = "".join(path.read_text() for path in _templates())
    files = [path.relative_to(root / "static") for path in _sources() if path.suffix in (".css", ".js")]
    assert [str(file) for file in files if f"'{file}'" not in pages] == []
