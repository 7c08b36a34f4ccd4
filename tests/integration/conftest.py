"""What the tests on a database share."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from tests.integration.sessions import Hints


@pytest.fixture
def hints(transactional_db: None) -> Iterator[Hints]:
    """Listen to the hints of both channels, on a connection of its own."""
    settings = connection.get_connection_params()
    wanted = {
        key: settings[key] for key in ("host", "port", "user", "password", "dbname") if settings.get(key)
    }
    with psycopg.connect(**wanted, autocommit=True) as listener:
        listener.execute("LISTEN engine_wake")
        listener.execute("LISTEN engine_changed")
        yield Hints(listener)
