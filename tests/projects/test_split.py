"""A site that stays on gunicorn: daphne serves the Studio beside it, by path or on a host of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.process.clusters import wait_until
from tests.processes import marked
from tests.projects.front import in_front
from tests.projects.project import Project
from tests.projects.visitor import Visitor

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

PASSWORD = "p-4711-xyz"
WORKERS = 3  # processes of gunicorn
WORKFLOWS = """
from engine import WorkflowStep, workflow


@workflow
async def greet(step: WorkflowStep) -> str:
    event = await step.wait_for_event("go")
    return event.payload
"""
VIEWS = """
import os
import time

from django.http import HttpResponse
from greetings.workflows import greet


def start(request):
    return HttpResponse(greet.start(id=request.GET["id"]).status)


def go(request):
    instance, is_new = greet.get_or_start(id=request.GET["id"])
    instance.send_event("go", "Hello")
    return HttpResponse(f"{instance.get_absolute_url()} {is_new}")


def who(request):
    started = greet.start()
    time.sleep(0.05)  # the other workers get the next requests
    return HttpResponse(f"{os.getpid()} {os.getppid()} {started.id}")
"""
URLS = """
from greetings import views
urlpatterns += [path("start/", views.start), path("go/", views.go), path("who/", views.who)]
"""
PEOPLE = f"""
from django.contrib.auth.models import User
User.objects.create_superuser("root", password="{PASSWORD}")
"""
# Another host serves the Studio alone.
STUDIO = """
from shop.settings import *
ROOT_URLCONF = "studio.site"
"""
GUNICORN = ("-m", "gunicorn", "--workers", str(WORKERS), "--bind", "127.0.0.1:PORT", "shop.wsgi")
DAPHNE = ("-m", "daphne", "-p", "PORT", "studio.asgi:application")


STATUS = "SELECT status, output::text FROM engine_instance"


@pytest.fixture(scope="module")
def project(bare_project: Project) -> Project:
    bare_project.app("greetings", workflows=WORKFLOWS, views=VIEWS)
    bare_project.follow_readme()
    bare_project.append("shop/urls.py", URLS)
    bare_project.write("shop/studio_settings.py", STUDIO)
    bare_project.manage("migrate", "-v", "0")
    bare_project.shell(PEOPLE)
    return bare_project


@pytest.fixture(scope="module")
def site(project: Project) -> Iterator[str]:
    with project.serving(*GUNICORN) as url:
        yield url


@pytest.fixture(scope="module")
def studio(project: Project) -> Iterator[str]:
    with project.serving(*DAPHNE, DJANGO_SETTINGS_MODULE="shop.settings") as url:
        yield url


def test_views_under_gunicorn_start_workflows_and_send_events(project: Project, site: str) -> None:
    visitor = Visitor(site)
    assert visitor.get("/start/?id=one").text == "queued"
    with project.working():
        assert visitor.get("/go/?id=one").text == "/ops/workflows/greet/instances/one/ False"
        project.wait_for(f"{STATUS} WHERE id = 'one'", [("complete", '"Hello"')])


def test_every_process_of_gunicorn_starts_workflows(project: Project, site: str) -> None:
    visitor = Visitor(site)
    found: dict[str, set[str]] = {}  # the instances that a process has started
    with ThreadPoolExecutor(2 * WORKERS) as crowd:
        while len(found) < WORKERS:
            for page in crowd.map(visitor.get, ["/who/"] * 2 * WORKERS):
                process, master, started = page.text.split()
                found.setdefault(process, set()).add(started)
                assert process != master
    there = {name for (name,) in project.query("SELECT id FROM engine_instance")}
    assert set().union(*found.values()) <= there


def test_one_host_serves_both_by_path(project: Project, site: str, studio: str) -> None:
    with in_front(project.directory / "nginx", site=site, studio=studio) as url:
        visitor = Visitor(url)
        page = visitor.sign_in("root", PASSWORD, path="/ops/instances/")
        assert (page.status, page.path) == (200, "/ops/instances/")
        # Signed in by daphne, and known to gunicorn.
        assert visitor.get("/admin/").path == "/admin/"
        with visitor.watch(page) as socket:
            assert visitor.get("/start/?id=by-path").text == "queued"
            assert any("1 new" in socket.read() for _ in range(3))


def test_each_server_stops_at_sigterm_and_leaves_the_other(project: Project) -> None:
    with (
        project.serving(*DAPHNE, DJANGO_SETTINGS_MODULE="shop.settings") as studio,
        project.serving(*GUNICORN) as site,
        in_front(project.directory / "front", site=site, studio=studio) as url,
    ):
        visitor = Visitor(url)
        process, master = map(int, visitor.get("/who/").text.split()[:2])
        os.kill(master, signal.SIGTERM)
        wait_until(lambda: not {process, master} & marked(project.run).keys())
        assert visitor.get("/who/").status == 502
        assert visitor.sign_in("root", PASSWORD).status == 200


def test_the_studios_pages_work_under_wsgi_and_say_that_they_do_not_follow(site: str) -> None:
    visitor = Visitor(site)
    page = visitor.sign_in("root", PASSWORD, path="/ops/instances/")
    assert (page.status, page.path) == (200, "/ops/instances/")
    assert visitor.get(page.socket).status == 426
    # Whoever waits for changes gets them by the slow poll.
    assert visitor.get("/ops/_f/live/?topic=home").status == 200


def test_another_host_serves_the_studio_alone(project: Project) -> None:
    with project.serving(*DAPHNE, DJANGO_SETTINGS_MODULE="shop.studio_settings") as url:
        visitor = Visitor(url)
        page = visitor.sign_in("root", PASSWORD, path="/instances/")
        assert (page.status, page.path) == (200, "/instances/")
        with visitor.watch(page) as socket:
            assert socket.read()
        assert visitor.get("/start/").status == 404
