"""`python -m studio COMMAND`: run one of Django's management commands under the settings of the Studio."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
    import django
    from django.core.management import execute_from_command_line

    from studio.environment.folder import find_modules_of_folder
    from studio.environment.starting import plain_refusals
    from studio.machine.ready import tell_ready

    find_modules_of_folder()
    with plain_refusals():
        django.setup()
        tell_ready()
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
