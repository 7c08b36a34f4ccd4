"""A project as `startproject` makes it, with the README's lines and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.projects.project import Project
from tests.projects.visitor import Visitor

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

WORKFLOWS = """
from engine import WorkflowStep, workflow


@workflow
async def greet(step: WorkflowStep, name: str) -> str:
    await step.wait_for_event("go")
    return await step.do("hello", "Hello, {}!".format, name)
"""
PEOPLE = """
from django.contrib.auth.models import Group, User
User.objects.create_superuser("root", password="p-4711-xyz")
User.objects.create_user("olga", password="p-4711-xyz").groups.add(Group.objects.get(name="reprise-operator"))
"""
STATUS = "SELECT workflow, status, output::text FROM engine_instance"


@pytest.fixture(scope="module")
def project(bare_project: Project) -> Project:
    bare_project.app("greetings", workflows=WORKFLOWS)
    bare_project.follow_readme()
    assert "engine.W015" in bare_project.manage("check")  # the tables, and nothing else
    bare_project.manage("migrate", "-v", "0")
    bare_project.shell(PEOPLE)
    return bare_project


@pytest.fixture(scope="module")
def url(project: Project) -> Iterator[str]:
    with project.serving() as url:
        yield url


def test_the_readmes_lines_leave_nothing_to_complain_about(project: Project) -> None:
    assert project.manage("check") == "System check identified no issues (0 silenced).\n"
    assert (
        project.manage("check", "--database", "default")
        == "System check identified no issues (0 silenced).\n"
    )


def test_people_sign_in_on_the_studios_own_page(url: str) -> None:
    visitor = Visitor(url)
    page = visitor.get("/ops/workflows/")
    assert page.path == "/ops/sign-in/?next=/ops/workflows/"
    style = re.search(r'href="(/static/studio/[^"]+\.css)"', page.text)
    assert style is not None
    assert visitor.get(style[1]).status == 200
    assert visitor.sign_in("olga", "wrong", path="/ops/workflows/").path == page.path
    assert visitor.sign_in("olga", "p-4711-xyz", path="/ops/workflows/").path == "/ops/workflows/"


def test_the_admin_is_as_it_was(url: str) -> None:
    visitor = Visitor(url)
    assert "Django administration" in visitor.get("/admin/").text
    page = visitor.post("/admin/login/?next=/admin/", username="root", password="p-4711-xyz")
    assert (page.status, page.path) == (200, "/admin/")
    assert "Content-Security-Policy" not in page.headers
    assert "studio/frame" not in page.text


def test_a_workflow_of_an_app_runs_on_real_workers_and_the_page_follows(project: Project, url: str) -> None:
    visitor = Visitor(url)
    visitor.sign_in("olga", "p-4711-xyz")
    with project.working():
        started = visitor.post("/ops/workflows/greet/start/", params='"Ada"', id="one")
        assert started.path == "/ops/workflows/greet/instances/one/"
        project.wait_for(STATUS, [("greet", "waiting", None)])
        with visitor.watch(started) as socket:
            assert "waiting" in socket.read()
            sent = visitor.post(
                "/ops/workflows/greet/instances/one/events/", started, type="go", payload="null"
            )
            assert sent.path == started.path
            while "complete" not in socket.read():
                pass
        project.wait_for(STATUS, [("greet", "complete", '"Hello, Ada!"')])
    assert "Hello, Ada!" in visitor.get("/ops/workflows/greet/instances/one/").text


def test_the_studios_limits_apply_to_its_own_pages_only(url: str) -> None:
    visitor = Visitor(url)
    visitor.get("/ops/sign-in/")
    sign_in = visitor.get("/ops/sign-in/")
    assert visitor.post("/ops/sign-in/", sign_in, username="x" * 70_000).status == 413
    admin = visitor.get("/admin/login/")
    large = visitor.post("/admin/login/", admin, username="x" * 2_000_000, password="y")
    assert "Please enter the correct username" in large.text
