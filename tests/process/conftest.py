"""Clusters for tests about processes, on a database of their own that the processes can see."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from pytest_django import DjangoDbBlocker

from studio.embedded import EmbeddedServer
from tests.conftest import home_directory
from tests.live import PROJECT
from tests.process.arena import Arena
from tests.process.clusters import Cluster


@pytest.fixture(scope="session")
def process_database(postgresql: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a migrated database."""
    name = "reprise_process"
    with psycopg.connect(postgresql.dsn("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    dsn = f"postgresql://reprise@/{name}?host={postgresql.dsn(name).split('host=')[1].split()[0]}"
    variables = Cluster(dsn, tmp_path_factory.mktemp("migrate")).variables
    subprocess.run(
        [sys.executable, str(PROJECT / "manage.py"), "migrate", "--verbosity", "0"],
        env=variables,
        cwd=PROJECT,
        check=True,
        timeout=120,
    )
    return dsn


@pytest.fixture
def make_cluster(process_database: str, tmp_path: Path) -> Iterator[Callable[[], Cluster]]:
    """Start clusters that are gone after the test, and begin with nothing in the database."""
    made: list[Cluster] = []
    with psycopg.connect(process_database, autocommit=True) as connection:
        connection.execute(
            "TRUNCATE django_q_ormq, django_q_task, engine_worker, engine_instance, engine_step, engine_attempt, "
            "engine_event, engine_log CASCADE"
        )

    def make() -> Cluster:
        made.append(Cluster(process_database, tmp_path))
        return made[-1].start()

    try:
        yield make
    finally:
        for cluster in made:
            cluster.end()


@pytest.fixture
def cluster(make_cluster: Callable[[], Cluster]) -> Cluster:
    return make_cluster()


@pytest.fixture(scope="session")
def ground() -> Iterator[Arena]:
    """The arena, opened once for the run."""
    with home_directory() as home:
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
