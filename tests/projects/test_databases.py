"""A project with more databases than `default`: a replica, others, and a second way to the same."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from studio.embedded import EmbeddedServer
from tests.projects.project import Project
from tests.projects.visitor import Visitor

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

DATABASES = """
here = DATABASES["default"]
DATABASES["replica"] = {**here, "NAME": here["NAME"] + "_replica", "TEST": {"MIRROR": "default"}}
DATABASES["other"] = {**here, "NAME": here["NAME"] + "_other"}
DATABASES["direct"] = {**here, "OPTIONS": {"application_name": "direct"}, "TEST": {"MIRROR": "default"}}
DATABASES["legacy"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "legacy.sqlite3"}
DATABASE_ROUTERS = ["shop.routers.Replica"]
"""
# As many projects have it. People sign in with rows that would have reached a replica long before.
ROUTERS = """
class Replica:
    def db_for_read(self, model, **hints):
        return None if model._meta.app_label in ("auth", "sessions") else "replica"

    def db_for_write(self, model, **hints):
        return "default"
"""
WORKFLOWS = """
from engine import WorkflowStep, workflow


@workflow
async def greet(step: WorkflowStep, name: str) -> None:
    await step.wait_for_event("go")
"""
TESTS = """
from django.contrib.auth.models import User
from django.test import TestCase, TransactionTestCase


class Kept(TransactionTestCase):
    serialized_rollback = True

    def test_none(self):
        self.assertFalse(User.objects.exists())


class One(TestCase):
    databases = "__all__"

    def test_one(self):
        User.objects.using("legacy").create(username="ada")


class Two(TransactionTestCase):
    databases = "__all__"

    def test_two(self):
        User.objects.using("other").create(username="ada")
"""
STEER = """
from greetings.workflows import greet
from engine.models import Audit, Instance
one = greet.start("Ada", id="steered", by="ana")
one.refresh_from_db(); one.pause(by="ana"); one.resume(by="ana"); one.terminate(by="ana")
one.refresh_from_db()
print(one.status, Audit.objects.count(), list(one.steps.all()), Instance.objects.using("default").count())
"""
PEOPLE = """
from django.contrib.auth.models import Group, User
User.objects.create_user("olga", password="p-4711-xyz").groups.add(Group.objects.get(name="reprise-operator"))
"""
TABLES = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'engine%' OR tablename LIKE 'studio%'"


@pytest.fixture(scope="module")
def project(bare_project: Project, postgresql: EmbeddedServer) -> Iterator[Project]:
    bare_project.app("greetings", workflows=WORKFLOWS, tests=TESTS)
    bare_project.follow_readme()
    bare_project.append("shop/settings.py", DATABASES)
    bare_project.write("shop/routers.py", ROUTERS)
    with psycopg.connect(postgresql.dsn("postgres"), autocommit=True) as connection:
        names = [f"{bare_project.database['NAME']}_{one}" for one in ("replica", "other")]
        for name in names:
            connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            bare_project.manage("migrate", "-v", "0", "--database", "direct")  # past a pooler, say
            yield bare_project
        finally:
            for name in names:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_instances_are_read_where_they_are_written(project: Project) -> None:
    assert project.shell(STEER) == "terminated 4 [] 1\n"
    listed = json.loads(project.manage("workflow", "list", "--json"))
    assert [one["id"] for one in listed["instances"]] == ["steered"]


def test_the_studio_reads_there_too(project: Project) -> None:
    project.shell(PEOPLE)
    with project.serving() as url:
        visitor = Visitor(url)
        visitor.sign_in("olga", "p-4711-xyz")
        started = visitor.post("/ops/workflows/greet/start/", params='"Ada"', id="started")
        assert started.path == "/ops/workflows/greet/instances/started/"
        assert "started" in visitor.get("/ops/workflows/greet/").text


def test_other_databases_are_migrated_and_get_no_tables_of_ours(
    project: Project, postgresql: EmbeddedServer
) -> None:
    for alias in ("legacy", "other"):
        project.manage("migrate", "-v", "0", "--database", alias)
    with closing(sqlite3.connect(project.directory / "legacy.sqlite3")) as legacy:
        tables = {name for (name,) in legacy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert "auth_user" in tables
    assert {name for name in tables if name.startswith(("engine_", "studio_"))} == set()
    with psycopg.connect(postgresql.dsn(f"{project.database['NAME']}_other")) as other:
        assert other.execute(TABLES).fetchall() == [(0,)]
        assert other.execute("SELECT to_regclass('auth_user') IS NOT NULL").fetchall() == [(True,)]
    project.manage("migrate", "engine", "zero", "-v", "0", "--database", "other")
    assert project.query(TABLES) == [(31,)]


def test_tests_that_use_all_databases_run(project: Project) -> None:
    said = project.manage("test", "greetings", "--noinput")
    assert "Ran 3 tests" in said
    assert "OK" in said
