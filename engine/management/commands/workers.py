from __future__ import annotations

import logging
from argparse import ArgumentParser
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from engine import configuration
from engine.command.program import Program


class Command(Program):
    help = (
        "Run workflows until stopped with SIGTERM or Ctrl-C. Running steps then have 10 seconds to finish. "
        "Unless the project has a django-q2 cluster of its own (Q_CLUSTER), this also runs its tasks and schedules."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        for name in ("WORKERS", "SLOTS"):
            declared = configuration.SETTINGS[name]
            default = f'REPRISE["{name}"], or {declared.default}'
            parser.add_argument(f"--{name.lower()}", metavar="N", help=f"{declared.about} ({default})")

    def handle(self, *args: Any, **options: Any) -> None:
        if not apps.is_installed("django_q"):
            raise CommandError(
                'Workers need "django_q" in INSTALLED_APPS. Add it, and run `manage.py migrate`.'
            )
        settings.SECRET_KEY  # noqa: B018 - django-q would only fail later without it
        try:
            for name in ("WORKERS", "SLOTS"):
                if options[name.lower()] is not None:
                    configuration.override(name, options[name.lower()], where=f"--{name.lower()}")
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None
        _show_log()
        from engine.worker.cluster import cluster

        cluster.run(workers=None if options["workers"] is None else configuration.setting("WORKERS"))


def _show_log() -> None:
    """Write the log to standard error if the project's LOGGING does nothing with it."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    for name in ("engine", "reprise"):
        logger = logging.getLogger(name)
        if not logger.hasHandlers():
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)
