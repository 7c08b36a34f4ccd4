from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class EngineConfig(AppConfig):
    name = "engine"
    label = "engine"
    verbose_name = "Reprise engine"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # As Django finds admin.py. A mistake in a declaration ends the start here, where it is seen.
        autodiscover_modules("workflows")
