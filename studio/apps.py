from django.apps import AppConfig


class StudioConfig(AppConfig):
    name = "studio"
    label = "studio"
    default_auto_field = "django.db.models.BigAutoField"
    starts_for_people = True  # any workflow; the lint about those that nothing starts leaves it out

    def ready(self) -> None:
        from studio import checks  # noqa: F401 - registers itself
