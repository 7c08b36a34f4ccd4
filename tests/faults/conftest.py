"""The test's database behind a proxy, for every connection that is opened from now on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from tests.faults.proxy import Proxy

CALLER = "caller"


@pytest.fixture
def proxy(engine_db: None, own_registry: None) -> Iterator[Proxy]:
    """The test's own connection is open already and unchanged: it reads what the others did."""
    connection.ensure_connection()
    place = connection.settings_dict
    before = dict(place)
    if not before["HOST"].startswith("/"):
        pytest.skip("the proxy takes a server with a Unix socket")
    with tempfile.TemporaryDirectory(prefix="proxy-") as directory:
        proxy = Proxy(Path(before["HOST"]), Path(directory)).start()
        options = before["OPTIONS"] | {"application_name": CALLER}
        place.update(HOST=directory, OPTIONS=options)
        try:
            yield proxy
        finally:
            place.update(before)
            proxy.stop()
