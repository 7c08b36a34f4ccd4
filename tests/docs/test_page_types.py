"""The code on the pages passes mypy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, PROJECT, as_program, blocks_of

SITE = Path(__file__).parent / "site"

# As strict as for users who annotate their functions; tests are rarely annotated.
OPTIONS = """
[mypy]
python_version = 3.11
plugins = mypy_django_plugin.main, pydantic.mypy
check_untyped_defs = true
disallow_any_generics = true
warn_return_any = true
strict_equality = true
no_implicit_reexport = true
cache_dir = {cache}

[mypy.plugins.django-stubs]
django_settings_module = typed_settings
"""
# Two versions of the same code stand on this one, under the same names.
TWICE = ("deploying.md",)
FOUND = re.compile(r"^.*?(\w+)\.py:(\d+): error: (.*)$")


@pytest.mark.second_tier
def test_what_people_read_passes_the_type_checker(tmp_path: Path) -> None:
    pages = {f"page_{page.stem.lower()}".replace("-", "_"): page for page in PAGES if page.name not in TWICE}
    for name, page in pages.items():
        (tmp_path / f"{name}.py").write_text(as_program(page.read_text()))
    found = [
        f"{pages[name].name}:{line}: {error}"
        for name, line, error in _errors(tmp_path)
        if name not in pages or line in _shown(pages[name])
    ]
    assert found == []


def _errors(directory: Path) -> Iterator[tuple[str, int, str]]:
    options = directory / "mypy.ini"
    options.write_text(OPTIONS.format(cache=PROJECT / ".mypy_cache" / "pages"))
    files = sorted(str(file) for file in directory.glob("*.py"))
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(options), *files],
        cwd=PROJECT,
        env={**os.environ, "MYPYPATH": f"{PROJECT}:{SITE}", "PYTHONPATH": f"{PROJECT}:{SITE}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode in (0, 1), run.stderr
    for one in run.stdout.splitlines():
        if error := FOUND.match(one):
            yield error[1], int(error[2]), error[3]


def _shown(page: Path) -> set[int]:
    """Return the numbers of the lines with code that people read, and should write so."""
    return {
        line
        for block in blocks_of(page.read_text())
        if not (block.is_hidden or block.is_wrong)
        for line in range(block.line, block.line + block.code.count("\n") + 1)
    }
