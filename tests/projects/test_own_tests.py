"""The tests of a project, which Django runs in databases that it makes and empties."""

from __future__ import annotations

import psycopg
import pytest

from tests.projects.project import Project

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

# The first of the tests leaves a row in the audit trail; Django empties the database after each.
TESTS = """
from django.contrib.auth.models import User
from django.test import TransactionTestCase

from engine.models import Instance
from greetings.workflows import greet


class One(TransactionTestCase):
    def test_one(self):
        greet.start("Ada", id="one").terminate(by="tests")
        User.objects.create(username="ada")

    def test_two(self):
        self.assertEqual(Instance.objects.count(), 0)
        self.assertEqual(User.objects.count(), 0)


class Two(One):
    pass
"""
WORKFLOWS = """
from engine import WorkflowStep, workflow


@workflow
async def greet(step: WorkflowStep, name: str) -> None:
    await step.wait_for_event("go")
"""


@pytest.fixture(scope="module")
def project(bare_project: Project) -> Project:
    bare_project.app("greetings", workflows=WORKFLOWS, tests=TESTS)
    bare_project.follow_readme()
    # Shared by production and tests, as where no other database may be created.
    named = 'DATABASES["default"]["TEST"] = {"NAME": "ci_" + DATABASES["default"]["NAME"]}\n'
    bare_project.write("shop/ci.py", f"from shop.settings import *\n{named}")
    return bare_project


@pytest.mark.parametrize("options", [["--keepdb"], ["--noinput", "--parallel", "2"]])
def test_django_empties_a_test_database_of_any_name(project: Project, options: list[str]) -> None:
    said = project.manage("test", "greetings", "--settings", "shop.ci", *options)
    assert "Ran 4 tests" in said
    assert "OK" in said


def test_elsewhere_the_audit_trail_is_protected_even_if_it_has_the_name_of_the_test_database(
    project: Project,
) -> None:
    project.write(
        "shop/shared.py",
        'from shop.settings import *\nDATABASES["default"]["TEST"] = {"NAME": DATABASES["default"]["NAME"]}\n',
    )
    project.manage("migrate", "--settings", "shop.shared", "--verbosity", "0")
    with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
        project.query("TRUNCATE engine_audit")
