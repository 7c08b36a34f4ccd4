"""A stack for tests of the HTTP API, which start instances and make tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import copy_database, home_directory
from tests.live import LiveStack

BODY_SECONDS = 5


@pytest.fixture(scope="package")
def api_stack(migrated_home: Path) -> Iterator[LiveStack]:
    """A stack that waits a few seconds for the body of a request."""
    with home_directory() as home:
        copy_database(migrated_home, home)
        stack = LiveStack(home, REPRISE_BODY_TIMEOUT_SECONDS=str(BODY_SECONDS)).start()
        try:
            yield stack
        finally:
            stack.stop()
