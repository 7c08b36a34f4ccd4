"""`python -m studio COMMAND`: run one of Django's management commands under the settings of the Studio."""

import os
import sys
from pathlib import Path


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
    # Settings of one's own may lie where people start us, as the apps do.
    if (working_directory := str(Path.cwd())) not in sys.path:
        sys.path.append(working_directory)
    from django.core.management import execute_from_command_line

    from studio.environment.starting import plain_refusals

    with plain_refusals():
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
