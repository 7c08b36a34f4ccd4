import os
import sys
from typing import Any, NoReturn

from django.conf import settings
from django.core import checks
from django.core.management.base import CommandError, SystemCheckError

from engine.command.program import FAILED, Program
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
            self._refuse(str(error))
        except PermissionError as error:
            self._refuse(
                f"{os.fspath(error.filename or '')}: permission denied. Set REPRISE_HOME to a directory of your own."
            )
        except OSError as error:
            where = os.fspath(error.filename or "")
            raise CommandError(f"Reprise cannot continue. {where}: {error.strerror}.") from error

    def check(self, *args: Any, **options: Any) -> None:
        """Run the checks. Print each error in a line, as everything else that prevents a start."""
        try:
            super().check(*args, **options)
        except SystemCheckError:
            found = [one for one in checks.run_checks() if one.is_serious() and not one.is_silenced()]
            self._refuse("\n".join(f"{one.msg} {one.hint or ''}".rstrip() for one in found))

    def _refuse(self, why: str) -> NoReturn:
        self.stderr.write(f"Reprise cannot start. {why}")
        sys.exit(FAILED)
