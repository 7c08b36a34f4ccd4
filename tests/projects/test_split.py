"""A site that stays on WSGI: daphne serves the Studio beside it, by path or on a host of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.projects.project import Project
from tests.projects.visitor import Visitor

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

PASSWORD = "p-4711-xyz"
WORKFLOWS = """
from engine import WorkflowStep, workflow


@workflow
async def greet(step: WorkflowStep) -> str:
    event = await step.wait_for_event("go")
    return event.payload
"""
VIEWS = """
from django.http import HttpResponse
from greetings.workflows import greet


def start(request):
    return HttpResponse(greet.start(id="one").status)


def go(request):
    instance, is_new = greet.get_or_start(id="one")
    instance.send_event("go", "Hello")
    return HttpResponse(f"{instance.get_absolute_url()} {is_new}")
"""
URLS = """
from greetings import views
urlpatterns += [path("start/", views.start), path("go/", views.go)]
"""
PEOPLE = f"""
from django.contrib.auth.models import User
User.objects.create_superuser("root", password="{PASSWORD}")
"""
# A server of threads, as gunicorn's: what it serves is the project's own wsgi.py.
WSGI = """
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server
from shop.wsgi import application
WSGIRequestHandler.log_message = lambda *arguments: None
make_server("127.0.0.1", int(sys.argv[1]), application).serve_forever()
"""
# Another host serves the Studio alone.
STUDIO = """
from shop.settings import *
ROOT_URLCONF = "studio.site"
"""
DAPHNE = ("-m", "daphne", "-p", "PORT", "studio.asgi:application")


@pytest.fixture(scope="module")
def project(bare_project: Project) -> Project:
    bare_project.app("greetings", workflows=WORKFLOWS, views=VIEWS)
    bare_project.follow_readme()
    bare_project.append("shop/urls.py", URLS)
    bare_project.write("serve.py", WSGI)
    bare_project.write("shop/studio_settings.py", STUDIO)
    bare_project.manage("migrate", "-v", "0")
    bare_project.shell(PEOPLE)
    return bare_project


@pytest.fixture(scope="module")
def site(project: Project) -> Iterator[str]:
    with project.serving("serve.py", "PORT") as url:
        yield url


@pytest.fixture(scope="module")
def studio(project: Project) -> Iterator[str]:
    with project.serving(*DAPHNE, DJANGO_SETTINGS_MODULE="shop.settings") as url:
        yield url


def test_views_under_wsgi_start_workflows_and_send_events(project: Project, site: str) -> None:
    visitor = Visitor(site)
    assert visitor.get("/start/").text == "queued"
    with project.working():
        assert visitor.get("/go/").text == "/ops/workflows/greet/instances/one/ False"
        project.wait_for("SELECT status, output::text FROM engine_instance", [("complete", '"Hello"')])


def test_one_sign_in_holds_for_both_servers(site: str, studio: str) -> None:
    visitor = Visitor(studio)
    assert visitor.sign_in("root", PASSWORD).status == 200
    visitor.url = site
    assert visitor.get("/admin/").path == "/admin/"


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
