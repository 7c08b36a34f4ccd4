"""Test whether changed code can be loaded: `python -m studio.supervisor.trial` loads what web and workers load.

Its last line is the result, as JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import Any

from studio.environment import Environment, Role
from studio.environment.folder import find_modules_of_folder
from studio.machine.account import Account
from studio.supervisor.programs import PYTHON, Child, how_it_ended, variables
from studio.supervisor.watch import Places

LOADS_WITHIN = 60.0
RESULT = "reprise-trial "
LONGEST_REASON = 300
LINES_KEPT = 100
BYTES_KEPT = 65536


@dataclass(frozen=True)
class Result:
    """Why the code cannot be loaded, or else what was found in it."""

    failure: str = ""
    places: Places | None = None
    workflows: int = 0
    migrations: tuple[str, ...] = ()
    """What the database lacks."""


class Trial:
    """A process that loads the code."""

    def __init__(self, environment: Environment, account: Account | None, now: float) -> None:
        command = [*PYTHON, "-m", __name__]
        self.child = Child("trial", command, variables(Role.COMMAND, environment), grace=0, account=account)
        self._lines: list[str] = []
        self._ends_at = now + LOADS_WITHIN
        self.child.start(now)

    def result(self, now: float) -> Result | None:
        """Return None while the code is being loaded."""
        process = self.child.process
        assert process is not None
        has_ended = process.poll() is not None
        self._read()
        if not has_ended:
            return (
                Result(f"Loading it took longer than {LOADS_WITHIN:g} s.") if now >= self._ends_at else None
            )
        return _parsed(self._lines) or Result(_of_end(process.returncode, self._lines))

    def end(self) -> None:
        """Kill what is left of the process."""
        self.child.kill()

    def _read(self) -> None:
        """Read what the code prints, or it would wait for us. Keep the end of it."""
        self._lines = [*self._lines, *self.child.read_lines()][-LINES_KEPT:]
        self.child.unfinished_line = self.child.unfinished_line[-BYTES_KEPT:]


def sentence(reason: str) -> str:
    """Return a reason in one line that is not too long, with a full stop."""
    line = (reason.strip().splitlines() or [""])[0]
    if len(line) > LONGEST_REASON:
        line = f"{line[:LONGEST_REASON]}…"
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def _of_end(code: int, lines: Iterable[str]) -> str:
    """Say how the process ended if it did not say so itself."""
    written = [line for line in lines if line.strip()]
    last = f" Its last line: {written[-1]}" if written else ""
    return sentence(f"Loading it ended the process ({how_it_ended(code)}).{last}")


def _parsed(lines: list[str]) -> Result | None:
    found = next((line for line in reversed(lines) if line.startswith(RESULT)), None)
    if found is None:
        return None
    read: dict[str, Any] = json.loads(found.removeprefix(RESULT))
    places = read["places"] and Places(**{name: tuple(paths) for name, paths in read["places"].items()})
    return replace(Result(**read), places=places, migrations=tuple(read["migrations"]))


def main() -> None:
    find_modules_of_folder()
    try:
        result = _load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the code raises
        from studio.environment.starting import reason

        result = Result(sentence(reason(error) or _described(error)))
    text = f"\n{RESULT}{json.dumps(asdict(result))}\n"
    os.write(1, text.encode())
    os._exit(0)  # threads that the code started do not keep us


def _load() -> Result:
    import django
    from django.conf import settings

    django.setup()
    import_module(settings.ROOT_URLCONF)  # what the web process adds
    from engine import workflows
    from studio.supervisor.places import places

    return Result(places=places(), workflows=len(workflows), migrations=tuple(_lacking()))


def _lacking() -> list[str]:
    import psycopg
    from django.db.migrations.loader import MigrationLoader

    from engine.status import schema

    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    try:
        return schema.missing(apps=loader.migrated_apps)
    except psycopg.Error:  # it does not answer; pages and workers say so
        return []


def _described(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"It calls sys.exit({error.code!r})"
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
