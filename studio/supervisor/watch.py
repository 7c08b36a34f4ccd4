"""Notice which files of some folders have changed, for a bounded share of a core."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOOK_SECONDS = 1.0
SETTLE_SECONDS = 0.4
# A look at 4,000 files takes about 15 ms. It is repeated after 200 times as long, so that it costs half a percent of a
# core; a look at very many files is taken in slices.
REST = 200
SLICE_SECONDS = 0.02

NOT_FOLLOWED = frozenset({"__pycache__", "node_modules", "site-packages"})
ENVIRONMENT_MARKS = frozenset({"pyvenv.cfg", "conda-meta"})
TEMPLATE_FOLDERS = frozenset({"templates", "jinja2"})
# They run in a process of their own.
TESTS = re.compile(r"(test_.*|conftest)\.py")

# The times and sizes of files.
Snapshot = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Places:
    """The folders and files to watch: in `templates` every file counts, in `code` Python files and templates."""

    code: tuple[str, ...]
    templates: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class Watch:
    """The files of some places, compared every second or, where they are many, less often."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._loaded: Snapshot | None = None
        self._moving: Snapshot | None = None
        self._look_at = 0.0
        self._begin()
        self._look()

    @property
    def is_moving(self) -> bool:
        """Whether files changed that may still change."""
        return self._moving is not None

    def changed(self, now: float, *, is_urgent: bool = False) -> list[str]:
        """Return the files that changed since they were loaded, once nothing changes any more.

        If it is urgent, look now, unless files are moving.
        """
        if now < self._look_at and (self.is_moving or not is_urgent):
            return []
        began = time.thread_time()
        changed = self._look()
        took = time.thread_time() - began
        self._look_at = now + (max(LOOK_SECONDS, took * REST) if not self.is_moving else SETTLE_SECONDS)
        return changed

    def follow(self, places: Places) -> None:
        """Watch other places from now on. What was watched before is compared with what was loaded."""
        if places == self._places:
            return
        self._places = places
        found: Snapshot = {}
        for _ in _read(places, found):
            pass
        known = self._loaded or {}
        self._loaded = {path: known.get(path, status) for path, status in found.items()}
        self._moving = None
        self._begin()

    def _begin(self) -> None:
        self._found: Snapshot = {}
        self._folders = _read(self._places, self._found)

    def _look(self) -> list[str]:
        """Read on for a slice of time. When everything is read, return what changed, unless it changes still."""
        ends_at = time.thread_time() + SLICE_SECONDS
        for _ in self._folders:
            if time.thread_time() > ends_at:
                return []
        found = self._found
        self._begin()
        if self._loaded is None:
            self._loaded = found
        if found not in (self._loaded, self._moving):
            self._moving = found
            return []
        moved, self._moving = found.items() ^ self._loaded.items(), None
        self._loaded = found
        return sorted({path for path, _ in moved})


def _read(places: Places, found: Snapshot) -> Iterator[None]:
    """Put the files of `places` into `found`, and pause after each folder."""
    seen = set(places.left_out)
    # Templates first: a folder is read only once, and in theirs every file counts.
    folders = [
        *((place, False) for place in reversed(places.code)),
        *((place, True) for place in places.templates),
    ]
    while folders:
        path, all_count = folders.pop()
        if path not in seen:
            seen.add(path)
            folders += _read_one(path, all_count, found)
            yield


def _read_one(path: str, all_count: bool, found: Snapshot) -> list[tuple[str, bool]]:
    """Put the files of a folder, or the file that `path` names, into `found`. Return the folders in it."""
    folders, files = [], []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                name = entry.name
                if name in ENVIRONMENT_MARKS:
                    return []
                if entry.is_dir(follow_symlinks=False):
                    if name[0] != "." and name not in NOT_FOLLOWED:
                        folders.append((entry.path, all_count or name in TEMPLATE_FOLDERS))
                elif _counts(name, all_count):
                    files.append(entry)
    except NotADirectoryError:
        _note(path, Path(path), found)
    except OSError:  # deleted meanwhile, or not ours to read
        return []
    for file in files:
        _note(file.path, file, found)
    return folders


def _counts(name: str, all_count: bool) -> bool:
    if all_count:
        return name[0] != "." and name[-1] != "~"  # what editors leave
    return name.endswith(".py") and name[0] != "." and not TESTS.fullmatch(name)


def _note(path: str, file: Path | os.DirEntry[str], found: Snapshot) -> None:
    try:
        status = file.stat()
    except OSError:  # deleted meanwhile, or a link to nothing
        return
    found[path] = (status.st_mtime_ns, status.st_size)
