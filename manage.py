#!/usr/bin/env python3
"""Run one of Django's management commands; `manage.py studio` starts everything."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    from studio.environment import SettingError

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        # A wrong variable wants its message read; a traceback would bury it.
        if not isinstance(error.__cause__, SettingError):
            raise
        sys.exit(f"Reprise cannot start. {error}")


if __name__ == "__main__":
    main()
