import sys
import warnings
from importlib import import_module
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models.signals import post_migrate, pre_migrate
from django.utils.module_loading import autodiscover_modules

from engine import name_conflicts
from engine.worker.cluster import options


class EngineConfig(AppConfig):
    name = "engine"
    label = "engine"
    verbose_name = "Reprise engine"
    default_auto_field = "django.db.models.BigAutoField"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if "django_q" in settings.INSTALLED_APPS:
            _load_django_q()

    @property
    def earlier_migrations(self) -> tuple[str, ...]:
        """Return what `0001_start` replaces: a database that has it is older, not newer."""
        from engine.models.earlier import MIGRATIONS

        return MIGRATIONS

    def ready(self) -> None:
        _refuse_hidden_studio()
        from engine import checks  # noqa: F401 - checks registers itself
        from engine.configuration import usable
        from engine.declare import secrets
        from engine.declare.registry import Workflow
        from engine.lints import checks as lints  # noqa: F401 - so do these
        from engine.models import Instance, django_tests, earlier, router, vendor
        from engine.steer import methods as steering

        Instance.steering = steering
        Workflow.steering = steering

        router.keep_in_default(self.label)
        pre_migrate.connect(vendor.refuse, sender=self)
        pre_migrate.connect(earlier.refuse, sender=self)
        post_migrate.connect(django_tests.allow_truncate, sender=self)
        secrets.install()  # before the declarations, which may contain secrets
        # Found as Django finds admin.py. A mistake in a declaration stops the start here, where it is noticed.
        autodiscover_modules("workflows")
        from engine.jobs import removal  # declares the workflow of bulk jobs
        from engine.steer import housekeeping

        housekeeping.add(removal.sweep)
        for module in usable("MODULES"):
            import_module(module)
        # Without django-q the engine can still start and steer instances; it only runs none here.
        if apps.is_installed("django_q"):
            from engine.worker.cluster import cluster

            cluster.take_part()


def _load_django_q() -> None:
    """Load django-q's settings, unless they are for a cluster of the project's own. Exit with a line about wrong ones.

    They are checked when they are first imported, with a warning of defaults that will be ours, and with TypeErrors.
    """
    if problem := options.problem():
        sys.exit(problem)
    said = options.of_project()
    if said is None or said.get("broker_class") == options.BROKER:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Retry and timeout are misconfigured")
            import django_q.conf  # noqa: F401


def _refuse_hidden_studio() -> None:
    """Raise ImproperlyConfigured if the site uses our Studio, and Python finds something else under its name.

    No check could say so: the site's URLs fail to load before.
    """
    uses_studio = (getattr(settings, "ASGI_APPLICATION", None) or "").startswith("studio.")
    for conflict in name_conflicts.conflicts() if uses_studio else ():
        if conflict.is_imported:
            raise ImproperlyConfigured(f"{conflict.message} {conflict.advice}")
