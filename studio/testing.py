"""A plugin for pytest: a PostgreSQL for tests under `studio.settings`, started when the first of them needs it.

Django and the Studio are imported only then. A server of the tests' own is used even while `reprise run` runs, and is
gone after them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    """Start the server before pytest-django makes the test database."""
    if fixturedef.argname == "django_db_setup" and "studio.settings" in sys.modules:
        _start_server(request.config)


def _start_server(config: pytest.Config) -> None:
    from django.conf import settings

    from studio.embedded import EmbeddedError, EmbeddedServer, socket_dir

    place = settings.DATABASES["default"]
    home = settings.ENVIRONMENT.home if hasattr(settings, "ENVIRONMENT") else None
    if home is None or settings.ENVIRONMENT.database_url or place.get("HOST") != str(socket_dir(home)):
        return  # another database, or a server of the project's own tests
    stack = ExitStack()
    config.add_cleanup(stack.close)
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reprise-tests-")))
    if os.geteuid() == 0:
        directory.chmod(0o711)  # root runs the server as another account, which must get in
    server = EmbeddedServer(directory)
    stack.callback(server.stop)
    try:
        server.start()
    except EmbeddedError as error:
        pytest.exit(str(error), returncode=pytest.ExitCode.USAGE_ERROR)
    place["HOST"] = str(socket_dir(directory))
