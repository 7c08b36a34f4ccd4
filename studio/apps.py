from django.apps import AppConfig


class StudioConfig(AppConfig):
    name = "studio"
    label = "studio"
    default_auto_field = "django.db.models.BigAutoField"
    earlier_migrations = ("0001_roles", "0002_permissions", "0003_throttle")  # 0001_start replaces them
    starts_for_people = True  # users start any workflow; the lint about unstarted ones ignores it

    def ready(self) -> None:
        from studio import checks  # noqa: F401 - registers itself
