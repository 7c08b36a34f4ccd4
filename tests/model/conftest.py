from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.declare.registry import Registry
from engine.worker.database import reader
from tests.model.machine import Database, Protocol
from tests.model.story import declare


@pytest.fixture
def protocol(
    engine_db: None, own_registry: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[type[Protocol]]:
    """The machine, on the test's database."""
    monkeypatch.setattr(reader, "PAGE_EVENTS", 2)  # so that few events are many
    # Other tests may have declared workflows with a limit, whose claims are another statement.
    monkeypatch.setattr(Registry, "limits", lambda registry: {})
    database = Database()
    Protocol.database = database
    Protocol.story, Protocol.hurried = declare()
    try:
        yield Protocol
    finally:
        database.close()
