"""Packages and modules of a project that have the names of ours: Python imports only one of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

NAMES = ("engine", "studio")

HOME = Path(__file__).resolve().parent.parent  # holds our packages


@dataclass(frozen=True)
class Conflict:
    """Something named like one of our packages, elsewhere on Python's path."""

    name: str
    theirs: Path
    is_imported: bool  # instead of ours

    @property
    def ours(self) -> Path:
        return HOME / self.name

    @property
    def message(self) -> str:
        found, hidden = (self.theirs, self.ours) if self.is_imported else (self.ours, self.theirs)
        owner = "Reprise's" if self.is_imported else "the project's"
        return f"`import {self.name}` finds {found}, which hides {owner} {hidden}."

    @property
    def advice(self) -> str:
        return f"Rename {self.theirs}: Reprise needs the package names {' and '.join(NAMES)}."


def conflicts(path: Sequence[str] | None = None) -> Iterator[Conflict]:
    """Yield the first conflict of each name on the path, by default `sys.path`."""
    for name in NAMES:
        for entry in sys.path if path is None else path:
            found = _found_in(Path(entry or ".").resolve(), name)
            if found is not None:
                yield Conflict(name, found, is_imported=_imported(name) != HOME / name)
                break


def _found_in(folder: Path, name: str) -> Path | None:
    if folder == HOME or (folder / "engine" / "worker" / "broker.py").exists():  # us, or another copy of us
        return None
    package, module = folder / name, folder / f"{name}.py"
    if any(package.glob("*.py")):
        return package
    return module if module.is_file() else None


def _imported(name: str) -> Path | None:
    spec = find_spec(name)
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or [])
    return Path(places[0] if places else spec.origin or "").resolve()
