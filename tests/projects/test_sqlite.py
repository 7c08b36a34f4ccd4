"""A project on SQLite, as `startproject` makes it, is told so before anything is made in its database."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.projects.project import Project

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

SETTINGS = """
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3"}}
"""
ELSEWHERE = """
class Router:
    def allow_migrate(self, db, app_label, **hints):
        return app_label not in ("engine", "studio")
"""


def test_migrate_names_the_database_and_makes_no_table(bare_project: Project) -> None:
    bare_project.follow_readme()
    bare_project.append("shop/settings.py", SETTINGS)
    # As test runners do it.
    said = bare_project.manage("migrate", "-v", "0", "--skip-checks", code=1)
    assert said == (
        'NotPostgreSQLError: The database "default" is sqlite, and the engine runs only on PostgreSQL 15 or newer. '
        'Change DATABASES["default"], or keep the app "engine" out of that database with a router.\n'
    )
    with closing(sqlite3.connect(bare_project.directory / "db.sqlite3")) as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == []

    bare_project.write("shop/routers.py", ELSEWHERE)
    bare_project.append("shop/settings.py", 'DATABASE_ROUTERS = ["shop.routers.Router"]\n')
    bare_project.manage("migrate", "-v", "0", "--skip-checks")
