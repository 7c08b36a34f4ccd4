"""Notice that code has changed, and test whether it can be loaded, before the programs are replaced."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from studio.environment import Environment, Role
from studio.environment.folder import CHECKOUT, OWN_MODULE
from studio.environment.starting import SETTINGS
from studio.machine.account import Account
from studio.machine.mortal import dies_with_parent
from studio.supervisor.programs import PYTHON, variables

LOOK_SECONDS = 1.0
SUFFIXES = (".py", ".html")
TESTS = re.compile(r"test_|conftest\.")
LOADS_WITHIN = 60.0

# The times and sizes of files.
Snapshot = dict[Path, tuple[int, int]]


class Watch:
    """The files of some folders, compared once a second."""

    def __init__(self, places: Iterable[Path]) -> None:
        self._places = list(places)
        self._loaded = self._snapshot()
        self._moving: Snapshot | None = None
        self._look_at = 0.0

    def changed(self, now: float) -> list[Path]:
        """Return the files that changed since they were loaded, once nothing changes any more."""
        if now < self._look_at:
            return []
        self._look_at = now + LOOK_SECONDS
        found = self._snapshot()
        if found in (self._loaded, self._moving):
            moved, self._moving = found.items() ^ self._loaded.items(), None
            self._loaded = found
            return sorted({path for path, _ in moved})
        self._moving = found
        return []

    def _snapshot(self) -> Snapshot:
        found = {}
        for path in (file for place in self._places for file in _files(place)):
            try:
                status = path.stat()
            except OSError:  # deleted meanwhile
                continue
            found[path] = (status.st_mtime_ns, status.st_size)
        return found


class Reload:
    """Whether the programs should be replaced, because changed code can be loaded."""

    def __init__(self, environment: Environment, account: Account | None) -> None:
        self._watch = Watch(places(environment))
        self._account = account
        self._what = ""
        self._trial: subprocess.Popen[str] | None = None

    def look(self, now: float) -> tuple[str, str]:
        """Return what changed, or "" if nothing did, and why it cannot be loaded, or ""."""
        if self._trial is None:
            if changed := self._watch.changed(now):
                self._what = _named(changed)
                self._trial = _trial(self._account)
            return "", ""
        if self._trial.poll() is None:
            return "", ""
        _, said = self._trial.communicate()
        failure = said.strip() or f"exit code {self._trial.returncode}"
        is_loaded, self._trial = self._trial.returncode == 0, None
        return self._what, "" if is_loaded else failure

    def end(self) -> None:
        if self._trial is not None:
            self._trial.kill()
            self._trial.wait()


def places(environment: Environment) -> list[Path]:
    """Return the folders and files whose changes count: the apps, the settings, and Reprise itself in a checkout."""
    loaded = (*environment.apps, *environment.modules, os.environ.get(SETTINGS, "studio"))
    packages = [name.partition(".")[0] for name in loaded]
    found = [place for name in dict.fromkeys(packages) if name != "studio" for place in _place_of(name)]
    if (CHECKOUT / ".git").exists():
        found += [CHECKOUT / name for name in ("engine", "studio", "templates")]
    if OWN_MODULE in environment.modules:
        found += (file for file in Path.cwd().glob("*.py") if not TESTS.match(file.name))
    return list(dict.fromkeys(found))


def _place_of(name: str) -> Iterator[Path]:
    spec = find_spec(name)
    for place in (spec.submodule_search_locations or [spec.origin or ""]) if spec else []:
        if not Path(place).is_relative_to(sysconfig.get_path("purelib")):
            yield Path(place)


def _files(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    for directory, folders, names in os.walk(place):
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        yield from (Path(directory, name) for name in names if name.endswith(SUFFIXES))


def _named(changed: list[Path]) -> str:
    first = os.path.relpath(changed[0])
    others = len(changed) - 1
    return f"{first} and {others} other{'s' * (others != 1)}" if others else first


def _trial(account: Account | None) -> subprocess.Popen[str]:
    """Load the code in a process of its own. If it fails, the process says why."""
    return subprocess.Popen(
        [*PYTHON, "-m", __name__],
        env={**variables(Role.COMMAND), **(account.variables() if account else {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=dies_with_parent(signal.SIGKILL),
        **(account.arguments() if account else {}),
    )


def main() -> None:
    import django
    from django.conf import settings

    from studio.environment.starting import reason

    signal.alarm(int(LOADS_WITHIN))
    try:
        django.setup()
        import_module(settings.ROOT_URLCONF)  # what the web process adds
    except Exception as error:  # noqa: BLE001 - whatever the code raises
        sys.exit((reason(error) or f"{type(error).__name__}: {error}").splitlines()[0])


if __name__ == "__main__":
    main()
