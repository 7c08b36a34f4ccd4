"""`manage.py check` reports settings that endanger work, and accepts those that we ship."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from pytest_django.fixtures import Settings

from engine import checks
from engine.status import schema
from engine.version import VERSION
from engine.worker.cluster import options

FOREIGN = "django_q.brokers.orm.ORM"


class OurBroker:
    """Not a subclass of the engine's broker, whatever its name says."""


def ids(messages: list[CheckMessage]) -> list[str]:
    return [str(message.id) for message in messages]


def test_the_shipped_settings_are_safe() -> None:
    assert run_checks(tags=["engine"]) == []


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("engine.E003", {"orm": "replica"}),
        ("engine.E004", {"timeout": 300, "retry": 300}),
        ("engine.W001", {"timeout": None}),
        ("engine.W001", {"timeout": -1}),
        ("engine.W002", {"ack_failures": False, "max_attempts": 0}),
        ("engine.W003", {"workers": 1}),
        ("engine.W004", {"guard_cycle": 5}),
        ("engine.W004", {"guard_cycle": 0}),
        ("engine.W006", {"save_limit": 250}),
        ("engine.W006", {"save_limit": 0}),
        ("engine.W007", {"cache": "table"}),
    ],
)
def test_a_dangerous_setting_of_the_cluster_is_named(
    settings: Settings, key: str, said: dict[str, Any]
) -> None:
    table = {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "table"}
    settings.CACHES = {**settings.CACHES, "table": table}
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, **said}
    found = checks.check_cluster()
    assert ids(found) == [key]
    assert found[0].hint


@pytest.mark.parametrize(
    "said",
    [
        {"timeout": 299, "retry": 300},
        {"ack_failures": False, "max_attempts": 1},
        {"workers": 2},
        {"guard_cycle": 0.3},
        {"broker_class": "tests.integration.test_broker.Subclass"},
    ],
)
def test_a_safe_setting_of_the_cluster_is_not_named(settings: Settings, said: dict[str, Any]) -> None:
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, **said}
    assert checks.check_cluster() == []


@pytest.mark.parametrize(
    "said",
    [
        {"orm": "replica", "timeout": 300, "retry": 30},
        {"broker_class": FOREIGN, "workers": 1},
        {"broker_class": "tests.integration.test_checks.OurBroker", "guard_cycle": 5},
        {"broker_class": "no.such.Broker"},
        {"redis": {"host": "queue"}},
        {},
    ],
)
def test_a_cluster_of_the_projects_own_is_not_judged(settings: Settings, said: dict[str, Any]) -> None:
    settings.Q_CLUSTER = said
    assert checks.check_cluster() == []


def test_a_project_needs_no_options_of_a_cluster(settings: Settings) -> None:
    """Those that it leaves out are safe."""
    settings.Q_CLUSTER = {"broker_class": options.BROKER}
    assert checks.check_cluster() == []
    del settings.Q_CLUSTER
    assert checks.check_cluster() == []


def test_a_project_without_django_q_is_told_that_it_has_no_workers(settings: Settings) -> None:
    settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != "django_q"]
    (lack,) = checks.check_cluster()
    assert (lack.id, lack.hint) == ("engine.E001", 'Add: INSTALLED_APPS += ["django_q"]')


BROKER = {"broker_class": options.BROKER}


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (None, None),
        ({"retry": None}, None),  # a cluster of the project's own
        ({**BROKER, "timeout": None, "workers": None, "retry": 1.5}, None),
        (["x"], "Q_CLUSTER is a list: it takes a dictionary."),
        ({**BROKER, "retry": None}, 'Q_CLUSTER["retry"] is None: it takes a number.'),
        ({**BROKER, "workers": "many"}, "Q_CLUSTER[\"workers\"] is 'many': it takes a number."),
        ({**BROKER, "guard_cycle": "0.5"}, "Q_CLUSTER[\"guard_cycle\"] is '0.5': it takes a number."),
        ({**BROKER, "save_limit": None}, 'Q_CLUSTER["save_limit"] is None: it takes a number.'),
        ({**BROKER, "cache": []}, 'Q_CLUSTER["cache"] is []: it takes a name.'),
    ],
)
def test_a_cluster_that_cannot_be_read_is_one_sentence(
    settings: Settings, said: object, sentence: str | None
) -> None:
    settings.Q_CLUSTER = said
    assert options.problem() == sentence


def test_times_need_their_offset(settings: Settings) -> None:
    assert checks.check_times() == []
    settings.USE_TZ = False
    (lack,) = checks.check_times()
    assert (lack.id, lack.hint) == ("engine.E007", "Add: USE_TZ = True")


def test_a_system_whose_queues_do_not_survive_kills_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "is_supported", lambda: False)
    assert ids(checks.check_cluster()) == ["engine.W005"]


@pytest.mark.parametrize("said", [{"DISABLE_SERVER_SIDE_CURSORS": True}, {"PORT": "6432"}, {"PORT": 6543}])
def test_a_pooler_is_guessed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any]
) -> None:
    monkeypatch.setitem(settings.DATABASES, "default", {**settings.DATABASES["default"], **said})
    assert ids(checks.check_databases()) == ["engine.W008"]


@pytest.mark.parametrize(
    ("command", "key", "said"),
    [
        ("qcluster", "engine.W009", {"CONN_MAX_AGE": 0}),
        ("qcluster", "engine.W010", {"OPTIONS": {"pool": True}}),
        ("workers", "engine.W010", {"OPTIONS": {"pool": True}}),
    ],
)
def test_connections_that_do_not_suit_a_cluster_are_named_where_it_runs(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, command: str, key: str, said: dict[str, Any]
) -> None:
    database = {**settings.DATABASES["default"], "CONN_MAX_AGE": 600, **said}
    monkeypatch.setitem(settings.DATABASES, "default", database)
    monkeypatch.setattr(sys, "argv", ["manage.py", command])
    assert ids(checks.check_databases()) == [key]
    if command == "qcluster":
        with monkeypatch.context() as own:
            own.setattr(settings, "Q_CLUSTER", {"orm": "default"})
            assert checks.check_databases() == []
    monkeypatch.setattr(sys, "argv", ["manage.py", "runserver"])
    assert checks.check_databases() == []


def test_another_database_than_postgresql_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "vendor", "sqlite")
    assert ids(checks.check_databases()) == ["engine.E005"]


@pytest.mark.django_db
def test_a_server_that_keeps_what_it_commits_is_fine() -> None:
    assert checks.check_server(databases=["default"]) == []


@pytest.mark.django_db
def test_a_server_that_confirms_before_it_writes_is_named() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")
    assert ids(checks.check_server(databases=["default"])) == ["engine.W013"]
    # The server is asked only with --database.
    assert checks.check_server(databases=None) == []


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("engine.E006", {"server_version_num": "140012"}),
        ("engine.W011", {"fsync": "off"}),
        ("engine.W012", {"full_page_writes": "off"}),
    ],
)
def test_a_server_that_is_old_or_careless_is_named(key: str, found: dict[str, str]) -> None:
    safe = {"server_version_num": "150000", **dict.fromkeys(checks.SERVER_SETTINGS, "on")}
    assert list(checks.judge_server(safe)) == []
    assert ids(list(checks.judge_server({**safe, **found}))) == [key]


@pytest.mark.parametrize("keys", ["one text", ["short"], [5], ["k" * 32, ""]])
def test_keys_of_secrets_that_cannot_be_used_are_named(settings: Settings, keys: object) -> None:
    settings.REPRISE = settings.REPRISE | {"SECRET_KEYS": keys}
    [found] = checks.check_secret_keys()
    assert found.id == "engine.E010"
    assert "newest first" in found.msg
    assert found.hint


def test_keys_of_secrets_may_be_left_out(settings: Settings) -> None:
    settings.REPRISE = settings.REPRISE | {"SECRET_KEYS": None}
    assert checks.check_secret_keys() == []
    settings.REPRISE = settings.REPRISE | {"SECRET_KEYS": ["k" * 32]}
    assert checks.check_secret_keys() == []


@pytest.mark.django_db
def test_a_cluster_does_not_load_the_migrations_of_all_apps_to_find_that_none_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(_loader: MigrationLoader) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr(MigrationLoader, "load_disk", load)
    assert schema.missing() == []
    monkeypatch.setattr(schema, "APPLIED", f"{schema.APPLIED} WHERE app <> 'engine'")
    with pytest.raises(AssertionError, match="loaded"):
        schema.missing()


def test_the_way_back_from_a_newer_database_is_a_command_for_each_app() -> None:
    said = schema.sentence_about_unknown(["engine.0902_next", "engine.0903_then", "studio.0902_next"])
    engine, studio = (last_migration(app) for app in ("engine", "studio"))
    assert said == (
        f"The database was migrated by a newer version of Reprise: {VERSION} does not know the migrations "
        "engine.0902_next, engine.0903_then, studio.0902_next. Install that version again, or use it to undo its "
        f"migrations: `python manage.py migrate engine {engine} && python manage.py migrate studio {studio}`."
    )


def last_migration(app: str) -> str:
    (leaf,) = MigrationLoader(None).graph.leaf_nodes(app)
    return leaf[1]
