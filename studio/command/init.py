"""`reprise init`: write a first workflow and its test."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

FIRST = Path(__file__).parent / "first"
SUFFIX = "-tpl"  # so that no tool takes the files for ours
IGNORE_FILE, IGNORED = ".gitignore", ".reprise/"
TEST_PACKAGES = {"pytest": "pytest", "pytest_django": "pytest-django"}


def init(arguments: Sequence[str]) -> None:
    """Write the files, and print what to do with them. If one exists already, write none and exit with a sentence."""
    folder = Path(make_parser().parse_args(arguments).folder)
    files = {file.name.removesuffix(SUFFIX): file.read_text(encoding="utf-8") for file in FIRST.iterdir()}
    try:
        _require_free(folder, files)
        _write(folder, files)
    except OSError as error:
        sys.exit(f"Nothing was written. {os.fspath(error.filename or folder)}: {error.strerror}.")
    sys.stdout.writelines(f"{line}\n" for line in _advice(folder, sorted(files)))


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="reprise init",
        description="Write a first workflow with its test: workflows.py, test_workflows.py, conftest.py, and a line "
        f"in {IGNORE_FILE}. Existing files are never overwritten.",
        allow_abbrev=False,
    )
    parser.add_argument("folder", nargs="?", default=".", help="where; made if needed (this folder)")
    return parser


def _require_free(folder: Path, files: Mapping[str, str]) -> None:
    if folder.exists() and not folder.is_dir():
        sys.exit(f"Nothing was written. {folder} is a file: name a folder.")
    if found := sorted(name for name in files if os.path.lexists(folder / name)):
        one_or_more = "is" if len(found) == 1 else "are"
        where = "this folder" if folder == Path() else str(folder)
        sys.exit(
            f"Nothing was written. {' and '.join(found)} {one_or_more} already in {where}: name another folder."
        )


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write all files or none. Raises OSError."""
    made: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                made.append(folder / name)
                file.write(text)
        _ignore(folder / IGNORE_FILE)
    except OSError:
        for path in made:
            with suppress(OSError):
                path.unlink()
        raise


def _ignore(file: Path) -> None:
    """Add a line for the database and the keys, unless it is there."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if any(line.strip().strip("/") == IGNORED.strip("/") for line in text.splitlines()):
        return
    separator = "\n" if text and not text.endswith("\n") else ""
    with file.open("a", encoding="utf-8") as opened:
        opened.write(f"{separator}{IGNORED}\n")


def _advice(folder: Path, names: Sequence[str]) -> Iterator[str]:
    go = "" if folder == Path() else f"cd {folder} && "
    missing = [name for module, name in TEST_PACKAGES.items() if find_spec(module) is None]
    install = f"pip install {' '.join(missing)} && " if missing else ""
    yield f"Wrote {', '.join(names)} and {IGNORE_FILE}. Next:"
    yield f"  {go}{install}pytest"
    yield f"  {go}reprise run"
