"""The files of docs/deploy, and the programs that read them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.live import PROJECT

DEPLOY = PROJECT / "docs" / "deploy"


def adapted(name: str, **replaced: str) -> str:
    """Return a file's text, with each of these texts replaced; each must be in it, written with its own words."""
    return adapt((DEPLOY / name).read_text(), replaced)


def adapt(text: str, replaced: dict[str, str]) -> str:
    for old, new in replaced.items():
        assert old in text, f"{old!r} is not in the file any more: the file has changed"
        text = text.replace(old, new)
    return text


def program(name: str, package: str) -> str:
    """Return where a program is; skip the test on a machine without it."""
    # Debian puts servers where the PATH of ordinary users does not lead.
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed here (Debian: apt install {package})")
    return found


def make_readable(directory: Path) -> None:
    """Let a server that gives up root read its files."""
    for path in (directory, *directory.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
