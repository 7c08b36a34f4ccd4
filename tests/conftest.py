"""What every test may use: a real PostgreSQL and the whole stack, each started once and only when asked for."""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from studio.embedded import DATABASE, EmbeddedServer, socket_dir
from tests.live import PASSWORD, LiveStack

pytest_plugins = [
    "engine.testing.plugin",  # an entry point, where the package is installed
    "tests.tiers",
    "tests.order",
]

# How long generated values take says how busy the machine is.
hypothesis_settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("any machine")

ENOUGH_MEMORY = 2 * 1024**3

MADE_BY_MIGRATIONS = {
    "django_migrations",
    "django_content_type",
    "auth_permission",
    "auth_group",
    "auth_group_permissions",
}

APPEND_ONLY = "engine_audit"  # its rows cannot be deleted
SPANS = "engine_workflow_span"

# Bytes up to which rows are deleted one by one sooner than every table gets a new file.
SMALL = 1024**2

# Most tables never hold a row, and need nothing. They are sorted, so that all sessions lock them in one order.
SIZES = """
    SELECT relname, pg_relation_size(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL (%s) AND pg_relation_size(oid) > 0
    ORDER BY relname
"""

# What the supervisor does with a database before it starts its programs.
PREPARE = f"""
from studio.supervisor.database import prepare
from studio.supervisor.database import make_first_account
prepare()
make_first_account({PASSWORD!r})
"""

# Where the processes of this run find what one of them makes for all: data, perhaps in memory, and programs on disk,
# because memory may be mounted so that no program there can be started.
RUN = pytest.StashKey[Path]()
PROGRAMS = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    if is_one_of_several(config):
        config.stash[RUN] = Path(config.workerinput["run"])
        config.stash[PROGRAMS] = Path(config.workerinput["programs"])
    else:
        stack = ExitStack()
        config.stash[RUN] = stack.enter_context(home_directory())
        config.stash[PROGRAMS] = stack.enter_context(home_directory(on_disk=True))
        config.add_cleanup(stack.close)
    # What a shell starts in the background ignores Ctrl-C, and so would the programs that the tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["run"] = str(node.config.stash[RUN])
    node.workerinput["programs"] = str(node.config.stash[PROGRAMS])


@pytest.fixture(scope="session")
def postgresql(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    """An embedded PostgreSQL of this process, its data in memory where there is enough of it."""
    with home_directory() as home:
        if is_one_of_several(request.config):
            copy_database(request.getfixturevalue("migrated_home"), home)
        server = EmbeddedServer(home)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(request: pytest.FixtureRequest) -> None:
    """Point pytest-django to that server, unless DATABASE_URL names another."""
    if settings.ENVIRONMENT.database_url is None:
        server: EmbeddedServer = request.getfixturevalue("postgresql")
        place = settings.DATABASES["default"]
        place["HOST"] = str(socket_dir(server.home))
        if is_one_of_several(request.config):
            place.setdefault("TEST", {})["TEMPLATE"] = DATABASE  # migrated already


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Empty what is copied of a first start. Drop it at the end, also if a thread that was given up holds a session."""
    with django_db_blocker.unblock():
        _empty_tables()
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture(scope="session")
def live_stack(migrated_home: Path) -> Iterator[LiveStack]:
    """The whole stack, shared by the run; for tests that leave it unchanged."""
    with home_directory() as home:
        copy_database(migrated_home, home)
        stack = LiveStack(home).start()
        try:
            yield stack
        finally:
            stack.stop()


@pytest.fixture(scope="session")
def migrated_home(request: pytest.FixtureRequest) -> Path:
    """A home with the database that a first start leaves, to copy from: a first start takes seconds."""
    run = request.config.stash[RUN]
    home = run / "migrated"
    with (run / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            draft = run / "draft"
            draft.mkdir()
            server = EmbeddedServer(draft)
            server.start()
            try:
                LiveStack(draft).django(PREPARE, timeout=600)  # without it no test runs
            finally:
                server.stop()
            draft.rename(home)
    return home


@pytest.fixture
def make_stack(migrated_home: Path) -> Iterator[Callable[..., LiveStack]]:
    """Make a stack of the test's own, not started yet; keyword arguments are environment variables.

    Its database is migrated and has its first account; `is_new=True` makes one that never ran.
    """
    made: list[LiveStack] = []
    with home_directory() as directory:

        def make(*, is_new: bool = False, **variables: str) -> LiveStack:
            home = directory / str(len(made))
            home.mkdir()
            if not is_new:
                copy_database(migrated_home, home)
            made.append(LiveStack(home, **variables))
            return made[-1]

        try:
            yield make
        finally:
            for stack in made:
                if stack.process is not None:
                    stack.stop()


def is_one_of_several(config: pytest.Config) -> bool:
    """Return whether pytest-xdist runs tests in other processes too; a single one is quicker without a copy."""
    return hasattr(config, "workerinput")


def copy_database(home: Path, other: Path) -> None:
    """Give another home the database of one whose server has stopped."""
    # Not shutil: the files keep their owner.
    subprocess.run(["cp", "-a", str(home / "pg"), str(other / "pg")], check=True)


@contextmanager
def home_directory(*, on_disk: bool = False) -> Iterator[Path]:
    """A directory that the database's account can enter, too; in memory where there is enough of it."""
    memory = Path("/dev/shm")
    is_roomy = not on_disk and memory.is_dir() and shutil.disk_usage(memory).free > ENOUGH_MEMORY
    with tempfile.TemporaryDirectory(prefix="reprise-", dir=memory if is_roomy else None) as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run one more process than there are cores, and two more with the second tier, which waits more.

    In the first, a third of the time each waits for something. Tests of processes use less than a fifth of a core.
    """
    return (os.cpu_count() or 1) + (1 if config.option.tier == "first" else 2)


@pytest.fixture
def only_possible_rows(db: None) -> Iterator[None]:
    """Fail a test that leaves rows in the database that the engine never writes."""
    from tests import possible

    yield
    found = possible.impossible()
    assert not found, "The engine never writes this:\n" + "\n".join(found[:10])


@pytest.fixture
def restored_registry() -> Iterator[None]:
    """Forget after the test which workflows and events it declared."""
    from engine import workflows
    from engine.declare.messages import declared_events

    known = [(one, dict(one)) for one in (workflows._workflows, declared_events)]
    yield
    for mapping, before in known:
        mapping.clear()
        mapping.update(before)  # type: ignore[arg-type]


@pytest.fixture
def own_registry(restored_registry: None) -> None:
    """Let a test declare workflows and events of its own, which are gone after it.

    Tests that ran before in this process may have imported the demo, whose names are common: they are free again.
    """
    from engine import workflows

    for name, one in list(workflows.items()):
        if one.handler.__module__.startswith("studio.demo"):
            del workflows._workflows[name]


@pytest.fixture
def engine_db(transactional_db: None) -> None:
    """The test's database, with commits that a shift sees; it is empty again after it."""


@pytest.fixture(scope="session", autouse=True)
def _quick_flush() -> Iterator[None]:
    """Empty the database quickly after a test that commits.

    Django truncates every table and creates the permissions again; that takes longer than most of a thousand
    short stories.
    """
    from django.test import TransactionTestCase

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda case: _empty_tables())
        yield


@pytest.fixture(scope="session", autouse=True)
def _static_files_found_once() -> Iterator[None]:
    """Look for the static files once in a process.

    Each client of Django makes the middleware anew, which reads the folders and what is known of each file: 20 ms, in
    thousands of tests.
    """
    from studio.server.static_files import StaticFilesMiddleware

    look = StaticFilesMiddleware.add_files_from_finders
    found: dict[tuple[object, ...], dict[str, Any]] = {}

    def add_files(middleware: StaticFilesMiddleware) -> None:
        places = (*settings.INSTALLED_APPS, *settings.STATICFILES_DIRS, *settings.STATICFILES_FINDERS)
        facts = (
            middleware.static_prefix,
            middleware.max_age,
            middleware.allow_all_origins,
            *map(str, places),
        )
        if facts not in found:
            look(middleware)
            found[facts] = dict(middleware.files)
        middleware.files.update(found[facts])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StaticFilesMiddleware, "add_files_from_finders", add_files)
        yield


def _empty_tables() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(SIZES, [[*MADE_BY_MIGRATIONS]])
        sizes = dict(cursor.fetchall())
        if sum(sizes.values()) > SMALL:
            cursor.execute(f"TRUNCATE {', '.join(sizes)} CASCADE")
            return
        if sizes.pop(APPEND_ONLY, 0):
            cursor.execute(f"TRUNCATE {APPEND_ONLY}")
        if sizes:
            # The last: changes of counts that are deleted are added to them.
            emptied = [*(table for table in sizes if table != SPANS), SPANS]
            cursor.execute("; ".join(f"DELETE FROM {table}" for table in emptied))
