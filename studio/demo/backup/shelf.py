"""The files of backups: those that wait for their proof and approval, and those that are kept.

    REPRISE_HOME/backups/FOLDER/.pending/INSTANCE/ATTEMPT.dump
    REPRISE_HOME/backups/FOLDER/DATABASE-TIME-CHECKSUM.dump, and .json beside it: the manifest

A backup is kept once its manifest is there. Nobody else may read these files: a dump holds everything.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from django.conf import settings
from pydantic import BaseModel, ValidationError

from engine import NonRetryableError, StepContext
from studio.demo.finished import finished

PENDING = ".pending"
CHUNK = 1024 * 1024


class Manifest(BaseModel):
    """What is known of a backup that is kept."""

    file: str
    database: str
    server_version: str
    taken_at: datetime
    bytes: int
    sha256: str
    rows: dict[str, int]
    instance: str
    approved_by: str
    comment: str


def pending(folder: str, instance_id: str, attempt: int) -> Path:
    """Return an attempt's own file, empty, in place of any that it may have left before."""
    path = _pending(folder, instance_id) / f"{attempt}.dump"
    for directory in reversed(path.parents[:4]):
        directory.mkdir(mode=0o700, exist_ok=True)
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    return path


def find(folder: str, instance_id: str, file: str) -> Path:
    """Return the path of an instance's dump. Raises NonRetryableError when it is gone."""
    path = _pending(folder, instance_id) / file
    if not path.exists():
        raise NonRetryableError(
            f"The dump {path} is gone: it was removed, or this worker runs on another machine than the one that "
            "dumped. Start a new backup."
        )
    return path


def checksum(folder: str, file: str, ctx: StepContext) -> str:
    """Return the SHA-256 of an instance's dump."""
    return _sha256(find(folder, ctx.instance_id, file), ctx)


def keep(folder: str, file: str, manifest: Manifest, ctx: StepContext) -> str:
    """Move the dump to its place, then write its manifest; return its name there.

    Goes on where an interrupted attempt stopped. Raises NonRetryableError if the dump is not the one that was approved.
    """
    place = _shelf(folder) / manifest.file
    if not place.exists():
        waiting = find(folder, ctx.instance_id, file)
        if _sha256(waiting, ctx) != manifest.sha256:
            raise NonRetryableError(
                f"The dump {waiting} was changed since its checksum was taken, so it is not what was approved. "
                "Start a new backup."
            )
        waiting.replace(place)
    _write(place.with_suffix(".json"), manifest.model_dump_json(indent=2) + "\n")
    _sync(place.parent)
    shutil.rmtree(_pending(folder, ctx.instance_id), ignore_errors=True)
    return place.name


def discard(folder: str, ctx: StepContext) -> None:
    """Delete the dump of this instance, and whatever its earlier attempts left."""
    with suppress(FileNotFoundError):
        shutil.rmtree(_pending(folder, ctx.instance_id))


def prune(folder: str, kept: str, keep: int, ctx: StepContext) -> list[str]:
    """Delete all but the newest `keep` backups of the folder, never the one just kept; return what was deleted."""
    manifests = sorted(_manifests(folder), key=lambda manifest: manifest.taken_at, reverse=True)
    others = [manifest for manifest in manifests if manifest.file != kept]
    # The manifest goes last: an interrupted attempt leaves it for the next one to find.
    for old in others[keep - 1 :]:
        place = _shelf(folder) / old.file
        place.unlink(missing_ok=True)
        place.with_suffix(".json").unlink(missing_ok=True)
        ctx.log.info("old backup deleted", file=old.file)
    return [old.file for old in others[keep - 1 :]]


def delete_left_behind(workflow: str, folder: str) -> list[str]:
    """Delete the dumps of instances that have ended without doing so: they were terminated."""
    parent = _shelf(folder) / PENDING
    waiting = [entry.name for entry in parent.iterdir()] if parent.is_dir() else []
    ended = sorted(finished(workflow, waiting))
    for instance_id in ended:
        shutil.rmtree(parent / instance_id, ignore_errors=True)
    return ended


def _manifests(folder: str) -> Iterator[Manifest]:
    for path in _shelf(folder).glob("*.json"):
        try:
            manifest = Manifest.model_validate_json(path.read_bytes())
        except (ValidationError, FileNotFoundError):
            continue  # somebody else's file, or pruned by another instance just now
        # What it names is deleted one day: it may name its own dump only.
        if manifest.file == path.with_suffix(".dump").name:
            yield manifest


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.draft")
    draft.touch(mode=0o600)
    with draft.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _sync(directory: Path) -> None:
    """Make the names in a directory survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sha256(path: Path, ctx: StepContext) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            if ctx.cancelled.is_set():
                raise TimeoutError(f"The checksum of {path.name} was not finished in time.")
    return digest.hexdigest()


def _shelf(folder: str) -> Path:
    return Path(settings.REPRISE_HOME) / "backups" / folder


def _pending(folder: str, instance_id: str) -> Path:
    return _shelf(folder) / PENDING / instance_id
