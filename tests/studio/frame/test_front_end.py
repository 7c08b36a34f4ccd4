"""Templates, styles and scripts are code."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from studio.frame.joined import FILES

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
    pages += "".join(f"'{file}'" for files in FILES.values() for file in files)
    assert [str(file) for file in files if f"'{file}'" not in pages] == []


def test_vendored_files_are_those_that_are_named() -> None:
    vendor = Path(settings.BASE_DIR) / "static" / "studio" / "vendor"
    named = dict(
        re.findall(r"^\| `(\S+)` .* `([0-9a-f]{64})` \|$", (vendor / "VERSIONS.md").read_text(), re.MULTILINE)
    )
    files = [*vendor.glob("*.*"), *vendor.glob("fonts/*")]
    found = {str(path.relative_to(vendor)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    del found["VERSIONS.md"]
    assert found == named
