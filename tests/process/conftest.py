"""Clusters for tests about processes, on a database of their own that the processes can see."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pytest_django import DjangoDbBlocker

from studio.embedded import DATABASE, USER, EmbeddedServer, socket_dir
from tests.conftest import copy_database, home_directory
from tests.process.apps import IMPATIENT
from tests.process.arena import Arena
from tests.process.clusters import Cluster

WORK = (
    "django_q_ormq",
    "django_q_task",
    "engine_instance",
    "engine_step",
    "engine_attempt",
    "engine_event",
    "engine_log",
    "engine_notice",
)


@contextmanager
def server_on_a_copy(migrated_home: Path) -> Iterator[EmbeddedServer]:
    """A server of its own with a migrated database."""
    with home_directory() as home:
        copy_database(migrated_home, home)
        server = EmbeddedServer(home)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def process_server(migrated_home: Path) -> Iterator[EmbeddedServer]:
    """A server with a migrated database, which no test crashes."""
    with server_on_a_copy(migrated_home) as server:
        yield server


@pytest.fixture(scope="session")
def process_database(process_server: EmbeddedServer) -> str:
    """The address of its database."""
    return url_of(process_server)


@pytest.fixture(scope="session")
def _everybodys_cluster(
    process_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster on a copy of that database, so that no other cluster takes its work."""
    with psycopg.connect(process_server.dsn("postgres"), autocommit=True) as connection:
        # Sessions of killed clusters may linger, and a database in use cannot be copied.
        lingering = "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE datname = %s"
        connection.execute(lingering, [DATABASE])
        connection.execute(f"CREATE DATABASE everybodys TEMPLATE {DATABASE}")
    cluster = Cluster(url_of(process_server, "everybodys"), tmp_path_factory.mktemp("everybodys"))
    # Killed clusters left their rows in what was copied, such as tasks that are given out again much later.
    cluster.query(f"TRUNCATE {', '.join((*WORK, 'engine_worker'))} CASCADE")
    try:
        yield cluster.start()
    finally:
        cluster.end()


@pytest.fixture
def shared_cluster(_everybodys_cluster: Cluster) -> Cluster:
    """A cluster for tests that leave it working: it runs already, and is idle."""
    cluster = _everybodys_cluster
    cluster.query(f"TRUNCATE {', '.join(WORK)} CASCADE")
    cluster.notes.write_text("")
    cluster.log.write_text("")
    return cluster


@pytest.fixture
def make_cluster(process_database: str, tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Start clusters that are gone after the test, and begin with nothing in the database.

    `size` is the number of its workers; other keyword arguments are environment variables.
    """
    made: list[Cluster] = []
    with psycopg.connect(process_database, autocommit=True) as connection:
        connection.execute(f"TRUNCATE {', '.join((*WORK, 'engine_worker'))} CASCADE")

    def make(**options: Any) -> Cluster:
        made.append(Cluster(process_database, tmp_path, **options))
        return made[-1].start()

    try:
        yield make
    finally:
        for cluster in made:
            cluster.end()


@pytest.fixture
def cluster(make_cluster: Callable[..., Cluster]) -> Cluster:
    return make_cluster()


@pytest.fixture
def impatient_cluster(make_cluster: Callable[..., Cluster]) -> Cluster:
    """A cluster that gives bodies 2 s to end when it stops, and everything else 4 s."""
    return make_cluster(**{IMPATIENT: "1"})


@pytest.fixture(scope="session")
def ground(migrated_home: Path) -> Iterator[Arena]:
    """The arena, opened once for the run."""
    with home_directory() as home:
        copy_database(migrated_home, home)
        arena = Arena(home)
        arena.open()
        try:
            yield arena
        finally:
            arena.close()


@pytest.fixture
def arena(ground: Arena, django_db_blocker: DjangoDbBlocker) -> Iterator[Arena]:
    """The arena for one test: empty before, checked after."""
    with django_db_blocker.unblock(), ground.round():
        yield ground


def url_of(server: EmbeddedServer, database: str = DATABASE) -> str:
    """Return where processes of this machine reach it."""
    return f"postgresql://{USER}@/{database}?host={socket_dir(server.home)}"
