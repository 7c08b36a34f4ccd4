import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from engine.command.source import Source

# What the Studio's modules import the models of.
NEEDED = ("engine", "django.contrib.auth", "django.contrib.contenttypes")


class StudioConfig(AppConfig):
    name = "studio"
    label = "studio"
    default_auto_field = "django.db.models.BigAutoField"
    earlier_migrations = ("0001_roles", "0002_permissions", "0003_throttle")  # 0001_start replaces them
    starts_for_people = True  # users start any workflow; the lint about unstarted ones ignores it

    def import_models(self) -> None:
        # The first moment at which all apps are known; the admin imports more of ours before `ready`.
        _refuse_other_engine()
        _require(*NEEDED)
        super().import_models()

    def ready(self) -> None:
        _refuse_other_engine()
        from engine.command.choice import use_elsewhere
        from engine.models import router
        from engine.steer import housekeeping
        from studio import checks  # noqa: F401 - registers itself
        from studio.access import rehashing
        from studio.models import expired
        from studio.webhooks import sweeping

        router.keep_in_default(self.label)
        use_elsewhere(_elsewhere)
        rehashing.connect()
        housekeeping.add(sweeping.sweep_all)
        housekeeping.add(expired.sweep)


def _elsewhere() -> "Source":
    """Return what asks the Studio that REPRISE_URL names. Imported here, because few commands need it."""
    from studio.remote.source import RemoteSource

    return RemoteSource()


def _require(*names: str) -> None:
    """Exit with one line if an app is missing: Django would fail to load the Studio before it runs any check."""
    missing = [name for name in names if not apps.is_installed(name)]
    if missing:
        listed = ", ".join(f'"{name}"' for name in missing)
        sys.exit(f'The app "studio" needs {listed}. Add: INSTALLED_APPS += [{listed}]')


def _refuse_other_engine() -> None:
    """Raise ImproperlyConfigured if a package of the project hides the engine: nothing of ours could say so later."""
    ours = Path(__file__).resolve().parent.parent / "engine"
    spec = find_spec("engine")
    if spec is None:
        return
    place = next(iter(spec.submodule_search_locations or ()), spec.origin)
    if place is not None and Path(place).resolve() != ours:
        raise ImproperlyConfigured(
            f"`import engine` finds {place}, which hides Reprise's {ours}. "
            f"Rename {place}: Reprise needs the package names engine and studio."
        )
