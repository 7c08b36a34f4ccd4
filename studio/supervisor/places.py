"""What to watch: the folder, the code that is loaded and not installed, and the folders of templates."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from django.conf import settings

from engine.configuration import setting
from studio.environment.folder import CHECKOUT
from studio.supervisor.watch import Places

INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")
INSTALLED_NAMES = frozenset({"site-packages", "dist-packages"})
OWN_PACKAGES = frozenset({"engine", "studio"})


def places() -> Places:
    """Return the places of what this process has loaded. Django must be set up."""
    code = [Path.cwd()] if Path.cwd().resolve() != CHECKOUT else []
    code += _loaded()
    if (CHECKOUT / ".git").exists():
        code += [CHECKOUT / name for name in (*OWN_PACKAGES, "templates")]
    templates = [
        Path(one)
        for engine in settings.TEMPLATES
        for one in cast(Iterable[str | Path], engine.get("DIRS", ()))
    ]
    left_out = filter(None, (setting("HOME"), settings.MEDIA_ROOT, settings.STATIC_ROOT))
    return Places(_unique(code), _unique(templates), _unique(left_out))


def _loaded() -> Iterator[Path]:
    """Yield the folders of packages, and the files of modules, that were imported and are not installed."""
    installed = [Path(sysconfig.get_path(name)).resolve() for name in INSTALLED]
    for name, module in sorted(sys.modules.items()):
        if "." in name or name in (*OWN_PACKAGES, "__main__"):
            continue
        for place in _places_of(module):
            is_installed = any(place.is_relative_to(one) for one in installed)
            if not is_installed and INSTALLED_NAMES.isdisjoint(place.parts):
                yield place


def _places_of(module: Any) -> list[Path]:
    if not isinstance(module, ModuleType):
        return []
    # Not getattr: some modules import others when they are asked for a name.
    known = vars(module)
    found = known.get("__path__") or [known.get("__file__")]
    return [Path(one).resolve() for one in found if isinstance(one, str)]


def _unique(paths: Iterable[str | Path]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(Path(path).resolve()) for path in paths))
