"""The code on the pages passes mypy."""

from __future__ import annotations

import os
import re
import subprocess
import symtable
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, PROJECT, as_versions, blocks_of

SITE = Path(__file__).parent / "site"

# As strict as it gets for users.
OPTIONS = """
[mypy]
python_version = 3.11
plugins = mypy_django_plugin.main, pydantic.mypy
strict = true
cache_dir = {cache}

[mypy.plugins.django-stubs]
django_settings_module = typed_settings
"""
FOUND = re.compile(r"^.*?(\w+)\.py:(\d+): error: (.*)$")


TYPE_ERROR = "# type error"  # behind a line of a wrong example

pytestmark = pytest.mark.second_tier


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, int, str]]:
    """What mypy says: of which page, at which of its lines."""
    directory = tmp_path_factory.mktemp("pages")
    pages: dict[str, Path] = {}
    for page in PAGES:
        for name, program in _modules(page):
            (directory / f"{name}.py").write_text(program)
            pages[name] = page
    return [(pages.get(name, directory / name), line, error) for name, line, error in _errors(directory)]


def test_what_people_read_passes_the_type_checker(found: list[tuple[Path, int, str]]) -> None:
    shown = {page: _shown(page) for page in PAGES}
    errors = [
        f"{page.name}:{line}: {error}"
        for page, line, error in found
        if page not in shown or line in shown[page]
    ]
    assert not errors, "\n".join(errors)


def test_what_a_page_calls_a_type_error_is_one(found: list[tuple[Path, int, str]]) -> None:
    marked = {
        (page.name, number)
        for page in PAGES
        for number, line in enumerate(page.read_text().splitlines(), start=1)
        if TYPE_ERROR in line
    }
    assert marked
    assert marked - {(page.name, line) for page, line, _ in found} == set()


def _modules(page: Path) -> Iterator[tuple[str, str]]:
    """Yield name and code of each version of a page, which has the names of earlier ones that it does not define."""
    stem = f"page_{page.stem.lower()}".replace("-", "_")
    homes: dict[str, str] = {}
    for number, program in enumerate(as_versions(page.read_text())):
        name, own = f"{stem}_{number}", _defined(program)
        imports = "; ".join(f"from {home} import {one}" for one, home in homes.items() if one not in own)
        yield name, imports + program  # the first line of a page is its title
        homes |= dict.fromkeys(own, name)


def _defined(program: str) -> set[str]:
    """Return the names that a module defines or imports at its top level."""
    scope = symtable.symtable(program, "page", "exec")
    return {one.get_name() for one in scope.get_symbols() if one.is_assigned() or one.is_imported()}


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
