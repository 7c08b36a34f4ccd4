"""Settings of Django that change addresses, access, templates or limits of a whole site: the Studio works with each."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.projects.project import Project
from tests.projects.visitor import Visitor

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

PASSWORD = "p-4711-xyz"
WORKFLOWS = """
from engine import WorkflowStep, workflow


@workflow
async def greet(step: WorkflowStep, name: str) -> str:
    await step.wait_for_event("go")
    return name
"""
PEOPLE = f"""
from django.contrib.auth.models import User
User.objects.create_superuser("root", password="{PASSWORD}")
from greetings.workflows import greet
greet.start("Ada", id="one")
"""
LINK = re.compile(r'(?:href|src|action|hx-get|hx-post|formaction)="(/[^"]*)"')
LOGIN_REQUIRED = "django.contrib.auth.middleware.LoginRequiredMiddleware"
LOCALE = "django.middleware.locale.LocaleMiddleware"
IN_LANGUAGES = """
from django.conf.urls.i18n import i18n_patterns
from django.urls import include, path
urlpatterns = i18n_patterns(path("ops/", include("studio.urls")), prefix_default_language=False)
"""


WITH_CONVERTER = """
from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.urls import include, path, register_converter


class GroupName:
    regex = "[a-z-]+"

    def to_python(self, value):
        return Group.objects.get(name=value)

    def to_url(self, group):
        return group.name


register_converter(GroupName, "group")
urlpatterns = [
    path("ops/", include("studio.urls")),
    path("groups/<group:group>/", lambda request, group: HttpResponse(group.name)),
]
"""


@pytest.fixture(scope="module")
def project(bare_project: Project) -> Project:
    bare_project.app("greetings", workflows=WORKFLOWS)
    bare_project.follow_readme()
    bare_project.manage("migrate", "-v", "0")
    bare_project.shell(PEOPLE)
    return bare_project


@contextmanager
def served(project: Project, name: str, settings: str = "", *arguments: str) -> Iterator[Visitor]:
    """Serve the project with more settings; yield a visitor."""
    project.write(f"shop/{name}.py", f"from shop.settings import *\n{settings}\n")
    program = ("-m", "daphne", "-p", "PORT", *arguments, "studio.asgi:application")
    with project.serving(*program, DJANGO_SETTINGS_MODULE=f"shop.{name}") as url:
        yield Visitor(url)


def check_links(visitor: Visitor, prefix: str) -> None:
    """Look at a page and the first frame of its socket: every link stays below the prefix."""
    page = visitor.get(f"{prefix}workflows/greet/instances/one/")
    assert page.status == 200
    assert page.socket.startswith(f"{prefix}ws/")
    with visitor.watch(page) as socket:
        frame = socket.read()
    for text in (page.text, frame):
        links = {link for link in map(html.unescape, LINK.findall(text)) if "/static/" not in link}
        assert links
        assert {link for link in links if not link.startswith(prefix)} == set()


def test_a_site_that_asks_everybody_to_sign_in_shuts_nobody_out(project: Project) -> None:
    with served(project, "behind_login", f'MIDDLEWARE += ["{LOGIN_REQUIRED}"]') as visitor:
        assert visitor.get("/ops/healthz").status == 200
        assert visitor.get("/ops/").path == "/ops/sign-in/?next=/ops/"
        assert visitor.sign_in("root", PASSWORD, path="/ops/audit/").path == "/ops/audit/"
        check_links(visitor, "/ops/")
    program = (
        "from django.test import Client; print(Client(HTTP_HOST='127.0.0.1').get('/ops/readyz').status_code)"
    )
    said = project.manage("shell", "--settings", "shop.behind_login", "--no-imports", "-c", program)
    assert said == "200\n"


@pytest.mark.parametrize("way", ["setting", "option"])
def test_links_of_pushes_are_below_the_servers_root_path(project: Project, way: str) -> None:
    settings = 'FORCE_SCRIPT_NAME = "/app"' if way == "setting" else ""
    options = ("--root-path", "/app") if way == "option" else ()
    with served(project, f"below_{way}", settings, *options) as visitor:
        assert visitor.sign_in("root", PASSWORD, path="/app/ops/").path == "/app/ops/"
        check_links(visitor, "/app/ops/")
        # Signing in would lead back to itself.
        again = Visitor(visitor.url).get("/app/ops/sign-in/?next=/app/ops/sign-in/")
        assert 'name="next" value=""' in again.text


def test_params_of_a_mebibyte_fit_into_a_site_with_djangos_limit_on_forms(project: Project) -> None:
    """A form writes an umlaut as six bytes."""
    with served(project, "plain") as visitor:
        visitor.sign_in("root", PASSWORD)
        form = visitor.get("/ops/workflows/greet/start/")
        name = "ü" * ((1024 * 1024 - 2) // 2)
        started = visitor.post("/ops/workflows/greet/start/", form, params=f'"{name}"', id="large")
        assert (started.status, started.path) == (200, "/ops/workflows/greet/instances/large/")
        event = visitor.post(f"{started.path}events/", form, type="go", payload=f'"{name[:450_001]}"')
        assert (event.status, event.path) == (200, started.path)
        refused = visitor.post("/ops/workflows/greet/start/", form, params="x" * 5_000_000)
        assert refused.status == 413
        said = visitor.post(
            "/ops/workflows/greet/start/", form, params="1", **{f"n{n}": "" for n in range(1_001)}
        )
        assert (said.status, "Request too large" in said.text) == (413, True)
    length = "SELECT octet_length(params #>> '{}') FROM engine_instance WHERE id = 'large'"
    assert project.query(length) == [(2 * len(name),)]


def test_a_route_that_cannot_be_resolved_here_gets_djangos_answer(project: Project) -> None:
    project.write("shop/converter_urls.py", WITH_CONVERTER)
    with served(project, "converter", 'ROOT_URLCONF = "shop.converter_urls"') as visitor:
        for _ in range(2):
            answer = visitor.get("/groups/reprise-admin/")
            assert (answer.status, "SynchronousOnlyOperation" in answer.text) == (500, True)
        visitor.sign_in("root", PASSWORD)
        check_links(visitor, "/ops/")
    said = "a route of the site raised SynchronousOnlyOperation"
    assert project.logs().count(said) == 1


def test_each_language_of_a_site_has_sockets_and_limits(project: Project) -> None:
    project.write("shop/languages_urls.py", IN_LANGUAGES)
    settings = f'ROOT_URLCONF = "shop.languages_urls"\nMIDDLEWARE.insert(2, "{LOCALE}")'
    with served(project, "languages", settings) as visitor:
        assert visitor.sign_in("root", PASSWORD, path="/de/ops/").path == "/de/ops/"
        for prefix in ("/de/ops/", "/ops/", "/de/ops/"):
            check_links(visitor, prefix)
        assert visitor.post("/de/ops/sign-out/", visitor.get("/de/ops/")).status == 200
        page = visitor.get("/de/ops/sign-in/")
        assert visitor.post("/de/ops/sign-in/", page, username="x" * 70_000).status == 413
