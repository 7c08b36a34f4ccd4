"""The folder that Reprise is started in, and what people type there.

A checkout has `manage.py`. With the installed package, any folder will do: its `.reprise` is the home, and workflows
may be in its `workflows.py`.
"""

import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from studio.environment.apps import app_names
from studio.environment.parsing import SettingError, words

OWN_MODULE = "workflows"
OWN_FILE = f"{OWN_MODULE}.py"
VARIABLE = "REPRISE_MODULES"

CHECKOUT = Path(__file__).resolve().parent.parent.parent
IS_CHECKOUT = (CHECKOUT / "manage.py").is_file()


def home_of(folder: Path) -> Path:
    """Return the default of REPRISE_HOME."""
    is_of_checkout = IS_CHECKOUT and not (folder / OWN_FILE).is_file()
    return (CHECKOUT if is_of_checkout else folder) / ".reprise"


def module_names(variables: Mapping[str, str], folder: Path) -> tuple[str, ...]:
    """Return the modules that declare workflows: those in REPRISE_MODULES, or without any apps the folder's own."""
    given = words(variables, VARIABLE)
    if given or app_names(variables):
        return given
    return (OWN_MODULE,) if (folder / OWN_FILE).is_file() else ()


def require_modules(names: Iterable[str], folder: Path) -> None:
    """Raise SettingError if the folder's own module is gone, or hidden by another one of that name."""
    own = folder / OWN_FILE
    if OWN_MODULE not in names:
        return
    spec = find_spec(OWN_MODULE)
    found = spec.origin if spec else None
    if not own.is_file():
        if spec is None:
            raise SettingError(f"{own} is missing.")
        return
    if found is None or not Path(found).samefile(own):
        raise SettingError(
            f"{own} cannot be loaded: Python finds another module of that name first, {found}. Put yours into an app, "
            "and name the app in REPRISE_APPS."
        )


def find_modules_of_folder() -> None:
    """Let Python find modules in the working directory, after all others: settings of one's own may be there."""
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.append(folder)


def program() -> str:
    """Return what people type before a management command."""
    return "python manage.py" if _is_made() else "reprise"


def start() -> str:
    """Return what people type to start everything."""
    return "make run" if _is_made() else "reprise run"


def _is_made() -> bool:
    return IS_CHECKOUT and Path(sys.argv[0]).name != "reprise"
