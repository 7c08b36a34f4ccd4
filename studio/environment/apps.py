"""The apps in REPRISE_APPS: they must exist, and must not be installed already."""

import difflib
import importlib.util
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from studio.environment.parsing import SettingError, words


def app_names(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the apps in REPRISE_APPS, without duplicates."""
    return tuple(dict.fromkeys(words(variables, "REPRISE_APPS")))


def require_apps(names: Iterable[str], installed: Collection[str]) -> None:
    """Raise SettingError for an app that cannot be found or is installed already."""
    for name in names:
        if name in installed:
            raise SettingError(f"REPRISE_APPS names {name}, which Reprise installs by itself. Leave it out.")
        if not _is_there(name.partition(".")[0]):
            near = difflib.get_close_matches(name, _packages(Path.cwd()), n=1)
            advice = f" Did you mean {near[0]}?" if near else ""
            raise SettingError(
                f"REPRISE_APPS names {name}, and there is no such package in {Path.cwd()} or on PYTHONPATH.{advice}"
            )


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ValueError, ImportError):
        return False


def _packages(directory: Path) -> list[str]:
    return [path.parent.name for path in directory.glob("*/__init__.py")]
