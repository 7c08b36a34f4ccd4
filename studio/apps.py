import sys

from django.apps import AppConfig, apps

# What the Studio's modules import the models of.
NEEDED = ("engine", "django.contrib.auth", "django.contrib.contenttypes")


class StudioConfig(AppConfig):
    name = "studio"
    label = "studio"
    default_auto_field = "django.db.models.BigAutoField"
    starts_for_people = True  # users start any workflow; the lint about unstarted ones ignores it

    def import_models(self) -> None:
        _require(*NEEDED)  # the first moment at which all apps are known
        super().import_models()

    def ready(self) -> None:
        from studio import checks  # noqa: F401 - registers itself


def _require(*names: str) -> None:
    """Exit with one line if an app is missing: Django would fail to load the Studio before it runs any check."""
    missing = [name for name in names if not apps.is_installed(name)]
    if missing:
        listed = ", ".join(f'"{name}"' for name in missing)
        sys.exit(f'The app "studio" needs {listed}. Add: INSTALLED_APPS += [{listed}]')
