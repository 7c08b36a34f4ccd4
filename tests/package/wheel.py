"""Build the wheel from the files of the checkout, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.live import PROJECT

# What tools leave in a folder that git does not know; names that begin with a dot are left out, too.
LEFTOVERS = {"build", "dist", "__pycache__"}


def files_of_checkout() -> list[Path]:
    """Return the files that a wheel is built from, relative to the checkout; links to folders count as one.

    Without git, these are all files but leftovers of tools.
    """
    names = list(_known_to_git()) or list(_found())
    return sorted(name for name in names if os.path.lexists(PROJECT / name))


def build(folder: Path) -> Path:
    """Build the wheel in `folder`, and return its path. Nothing is written into the checkout."""
    source = folder / "source"
    for name in files_of_checkout():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PROJECT / name, source / name, follow_symlinks=False)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    run_pip([*command, str(folder / "wheels"), str(source)])
    [wheel] = (folder / "wheels").iterdir()
    return wheel


def run_pip(command: list[str]) -> None:
    """Run pip as this machine has configured it."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def _known_to_git() -> Iterator[Path]:
    """Yield what is tracked or could be; nothing where the checkout is no repository, or ignored by another one."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    with suppress(OSError, subprocess.CalledProcessError):
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, check=True)
        yield from (Path(os.fsdecode(name)) for name in done.stdout.split(b"\0") if name)


def _found() -> Iterator[Path]:
    for directory, folders, names in os.walk(PROJECT):
        here = Path(directory).relative_to(PROJECT)
        links = [name for name in folders if Path(directory, name).is_symlink()]
        folders[:] = [
            name
            for name in folders
            if name not in LEFTOVERS and name not in links and not name.startswith(".")
        ]
        yield from (here / name for name in (*links, *names) if not name.startswith("."))
