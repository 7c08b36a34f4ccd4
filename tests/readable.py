"""The project where an ordinary account can read it: a checkout and its Python may lie under /root."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from studio.machine.account import Account
from tests.live import PROJECT

PARTS = ("engine", "studio", "static", "templates", "manage.py")

# What tests of the whole stack do not need, and what is large.
LEFT_OUT = {"test", "site-packages", "playwright", "mypy", "mypyc", "ruff", "hypothesis", "__pycache__"}


@dataclass(frozen=True)
class Tree:
    """A Python and a project; `variables` make the first one find its packages."""

    python: str
    project: Path
    variables: dict[str, str]


def readable_tree(directory: Path, account: Account) -> Tree:
    """Return what the account can run: the checkout itself, or a copy of it under `directory`."""
    packages = Path(sysconfig.get_path("purelib"))
    python, library = sys.executable, ""
    if not _can(account, [python, "-c", "import ssl"]):
        python = str(_copy_python(directory / "python"))
        library = str(directory / "python" / "lib")
    project = PROJECT
    if not all(_can(account, ["/bin/ls", str(path)]) for path in (PROJECT / "studio", packages / "django")):
        project = _copy_project(directory / "project")
        packages = _copy(packages, directory / "packages")
    variables = {"PYTHONPATH": f"{project}:{packages}", "LD_LIBRARY_PATH": library}
    return Tree(python, project, {name: value for name, value in variables.items() if value})


def _can(account: Account, command: list[str]) -> bool:
    try:
        return subprocess.run(command, cwd="/", capture_output=True, **account.arguments()).returncode == 0
    except OSError:
        return False


def _copy_python(directory: Path) -> Path:
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    base = Path(sys.base_prefix)
    (directory / "bin").mkdir(parents=True)
    shutil.copy(base / "bin" / name, directory / "bin" / name)
    _copy(base / "lib" / name, directory / "lib" / name)
    for shared in (base / "lib").glob("libpython*"):
        shutil.copy(shared, directory / "lib" / shared.name)
    return directory / "bin" / name


def _copy_project(directory: Path) -> Path:
    directory.mkdir()
    for name in PARTS:
        part = PROJECT / name
        copy: Callable[[Path, Path], object] = _copy if part.is_dir() else shutil.copy
        copy(part, directory / name)
    return directory


def _copy(source: Path, target: Path) -> Path:
    def left_out(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name in LEFT_OUT or name.startswith("config-")}

    return Path(shutil.copytree(source, target, ignore=left_out))
