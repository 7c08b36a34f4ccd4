"""A forked child has none of its parent's connections, and the parent keeps them."""

from __future__ import annotations

import multiprocessing
import os

import pytest
from django.db import connection

FORK = multiprocessing.get_context("fork")


@pytest.mark.django_db(transaction=True)
def test_a_child_opens_a_connection_of_its_own_and_the_parents_goes_on() -> None:
    def backend() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return int(cursor.fetchone()[0])

    ours = backend()
    reader, writer = FORK.Pipe(duplex=False)

    def ask() -> None:
        writer.send((connection.connection is None, backend()))
        os._exit(0)

    child = FORK.Process(target=ask, daemon=True)
    child.start()
    assert reader.poll(10)
    began_without, theirs = reader.recv()
    child.join(60)
    assert began_without
    assert theirs != ours
    assert backend() == ours
