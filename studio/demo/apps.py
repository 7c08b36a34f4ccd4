from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "studio.demo"
    label = "demo"
    verbose_name = "Reprise demo"
