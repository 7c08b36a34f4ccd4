"""Releases as folders: the one that is to go out, its copies at the servers, and the switch between them."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from pathlib import Path

from django.conf import settings
from pydantic import BaseModel

from engine import NonRetryableError, StepContext
from studio.demo.release.contents import checksums, version

SAMPLE = "sample"
BEFORE = "before"
MAX_FILES = 500
MAX_BYTES = 50 * 1024 * 1024

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<link rel="stylesheet" href="style.css">
<h1>{title}</h1>
<p>{text}</p>
</html>
"""
STYLE = "body { font: 16px/1.5 sans-serif; margin: 4rem auto; max-width: 40rem; color: %s }\n"
MADE_UP = {
    BEFORE: {
        "index.html": PAGE.format(
            title="Before", text="What the servers serve until the release reaches them."
        ),
        "style.css": STYLE % "#555",
    },
    SAMPLE: {
        "index.html": PAGE.format(title="Sample", text="A release that went from server to server."),
        "style.css": STYLE % "#0a5",
        "notes/changes.txt": "The colour is green now.\n",
    },
}


class Release(BaseModel):
    """A folder to release: the SHA-256 of each of its files, and the version that follows from them."""

    name: str
    version: str
    files: dict[str, str]


def prepare(name: str, ctx: StepContext) -> Release:
    """Check the folder and read what it holds; make it first if it is the sample.

    Raises NonRetryableError for a folder that is not there, has links that lead who knows where, or is too big.
    """
    folder = path_of(name)
    if name in MADE_UP and not folder.exists():
        _make(folder, MADE_UP[name])
        ctx.log.info("made up a release", folder=str(folder))
    _check(folder)
    files = checksums(folder)
    return Release(name=name, version=version(files), files=files)


def copy_to(server: Path, release: Release) -> Path:
    """Copy a release to a server's own directory, whole or not at all; return the copy.

    Raises NonRetryableError if the folder is not what it was when the release began.
    """
    copy = server / "releases" / release.version
    if copy.exists():
        return copy
    copy.parent.mkdir(exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=copy.parent))
    try:
        shutil.copytree(path_of(release.name), draft, dirs_exist_ok=True)
        if version(checksums(draft)) != release.version:
            raise NonRetryableError(
                f'The folder "{release.name}" was changed while it was being released. Start a new release.'
            )
        # A worker that was taken for dead may have been faster; its copy is the same.
        if not copy.exists():
            draft.rename(copy)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return copy


def damage(copy: Path) -> str:
    """Cut the first file of a copy in half, as a broken transfer would; return its name."""
    first = min(path for path in copy.rglob("*") if path.is_file())
    os.truncate(first, first.stat().st_size // 2)
    return first.relative_to(copy).as_posix()


def switch(server: Path, copy: Path) -> None:
    """Point the server's link to a copy, at once: there is no moment without a release."""
    link = server / f".current-{uuid.uuid4().hex}"
    link.symlink_to(copy.relative_to(server))
    link.replace(server / "current")


def path_of(name: str) -> Path:
    return Path(settings.REPRISE_HOME) / "demo" / "releases" / name


def _make(folder: Path, files: dict[str, str]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder.parent))
    for name, text in files.items():
        (draft / name).parent.mkdir(exist_ok=True)
        (draft / name).write_text(text)
    try:
        draft.rename(folder)
    except OSError:
        # Another instance was faster; its folder is the same.
        shutil.rmtree(draft)


def _check(folder: Path) -> None:
    if not folder.is_dir():
        raise NonRetryableError(
            f"There is no folder {folder}. Put the files to release there, with an index.html, or release "
            f'"{SAMPLE}", which is made up.'
        )
    paths = list(folder.rglob("*"))
    if linked := [path for path in paths if path.is_symlink()]:
        raise NonRetryableError(
            f"{linked[0]} is a link: a release holds files only. Replace it by what it leads to."
        )
    sizes = [path.stat().st_size for path in paths if path.is_file()]
    if not sizes or len(sizes) > MAX_FILES or sum(sizes) > MAX_BYTES:
        raise NonRetryableError(
            f"{folder} has {len(sizes):,} files of {sum(sizes):,} bytes. A release has from 1 to {MAX_FILES} files "
            f"of {MAX_BYTES:,} bytes in all."
        )
