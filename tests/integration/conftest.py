"""What the tests on a database share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection

from engine.worker.bodies.attempt import Bodies
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


@pytest.fixture
def bodies(monkeypatch: pytest.MonkeyPatch) -> list[Bodies]:
    """Return the shifts of this test, as they are created."""
    made: list[Bodies] = []
    init = Bodies.__init__

    def note(self: Bodies, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        made.append(self)

    monkeypatch.setattr(Bodies, "__init__", note)
    return made
