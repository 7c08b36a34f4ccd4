import os
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from engine.command.program import Program
from studio.embedded import EmbeddedError
from studio.supervisor.address import AddressError
from studio.supervisor.database import DatabaseError, PasswordError
from studio.supervisor.home import AlreadyRunningError
from studio.supervisor.supervise import run


class Command(Program):
    help = "Start the database (unless DATABASE_URL is set), the web process and the workers; Ctrl-C stops them all."

    def handle(self, *args: Any, **options: Any) -> None:
        if not hasattr(settings, "ENVIRONMENT"):
            raise CommandError(
                f"{settings.SETTINGS_MODULE} are the settings of another site. Start its web server and workers with "
                "its own commands, or begin the settings with: from studio.settings import *"
            )
        try:
            run(settings.ENVIRONMENT)
        except (EmbeddedError, AddressError, DatabaseError, PasswordError, AlreadyRunningError) as error:
            raise CommandError(str(error)) from None
        except PermissionError as error:
            raise CommandError(
                f"{os.fspath(error.filename or '')}: permission denied. Set REPRISE_HOME to a directory of your own."
            ) from None
        except OSError as error:
            where = os.fspath(error.filename or "")
            raise CommandError(f"Reprise cannot continue. {where}: {error.strerror}.") from error
