from importlib import import_module

from django.apps import AppConfig, apps
from django.db.models.signals import pre_migrate
from django.utils.module_loading import autodiscover_modules


class EngineConfig(AppConfig):
    name = "engine"
    label = "engine"
    verbose_name = "Reprise engine"
    default_auto_field = "django.db.models.BigAutoField"

    @property
    def earlier_migrations(self) -> tuple[str, ...]:
        """Return what `0001_start` replaces: a database that has it is older, not newer."""
        from engine.models.earlier import MIGRATIONS

        return MIGRATIONS

    def ready(self) -> None:
        from engine import checks  # noqa: F401 - checks registers itself
        from engine.configuration import setting
        from engine.declare import secrets
        from engine.declare.registry import Workflow
        from engine.lints import checks as lints  # noqa: F401 - so do these
        from engine.models import Instance, earlier
        from engine.steer import methods as steering

        Instance.steering = steering
        Workflow.steering = steering

        pre_migrate.connect(earlier.refuse, sender=self)
        secrets.install()  # before the declarations, which may contain secrets
        # Found as Django finds admin.py. A mistake in a declaration stops the start here, where it is noticed.
        autodiscover_modules("workflows")
        for module in setting("MODULES"):
            import_module(module)
        # Without django-q the engine can still start and steer instances; it only runs none here.
        if apps.is_installed("django_q"):
            from engine.worker.cluster import cluster

            cluster.harden()
