"""The API in a project of its own: below any prefix and language, under any server, with the project's own users."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.projects.project import PATIENCE, Project

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

WORKFLOWS = """
from engine import WorkflowStep, workflow


@workflow
async def greet(step: WorkflowStep, name: str) -> str:
    await step.wait_for_event("go")
    return name
"""
PEOPLE = """
from django.contrib.auth.models import Group, User
from studio.access import tokens
from studio.access.verbs import Verb
root = User.objects.create_superuser("root", password="p-4711-xyz")
for role in ("operator", "viewer"):
    User.objects.create_user(role).groups.add(Group.objects.get(name=f"reprise-{role}"))
print(tokens.issue("ci", by=root, owner=root, verbs=[Verb.OPERATE]).text)
print(tokens.issue("eyes", by=root, owner=root).text)
"""
KEYS = """
from django.contrib.auth.models import User
from ninja.security import APIKeyHeader


class Keys(APIKeyHeader):
    param_name = "X-Key"

    def authenticate(self, request, key):
        return User.objects.filter(username=key).first() if key else None
"""
# The server waits after its answer is made, as long as there is a file.
HELD = """
import time
from pathlib import Path


class HoldMiddleware:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        response = self.get_response(request)
        while Path("hold").exists():
            time.sleep(0.01)
        return response
"""
# Holds a start in its transaction while somebody has the lock.
TRIGGER = """
CREATE FUNCTION hold_start() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END $$;
CREATE TRIGGER hold_start AFTER INSERT ON engine_audit FOR EACH ROW
    WHEN (NEW.verb = 'start') EXECUTE FUNCTION hold_start();
"""
IN_LANGUAGES = """
from django.conf.urls.i18n import i18n_patterns
from django.urls import include, path
urlpatterns = i18n_patterns(path("ops/", include("studio.urls")), prefix_default_language=False)
"""
LOGIN_REQUIRED = 'MIDDLEWARE += ["django.contrib.auth.middleware.LoginRequiredMiddleware"]'
LOCALE = 'MIDDLEWARE.insert(2, "django.middleware.locale.LocaleMiddleware")'
OWN_USERS = 'REPRISE = {"API_AUTH": ["greetings.keys.Keys"]}'
API = "ops/api/v1"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Caller:
    """A program that calls a server of the project."""

    url: str
    headers: dict[str, str]

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in (self.headers | headers).items()}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            sent["Content-Type"] = "application/json"
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        is_json = "json" in answer.headers.get("Content-Type", "")
        return Answer(answer.status, dict(answer.headers), json.loads(text) if text and is_json else text)


Calls = Callable[[str], Caller]


@pytest.fixture(scope="module")
def project(bare_project: Project) -> Project:
    bare_project.app("greetings", workflows=WORKFLOWS, keys=KEYS, held=HELD)
    bare_project.follow_readme()
    bare_project.manage("migrate", "-v", "0")
    return bare_project


@pytest.fixture(scope="module")
def texts(project: Project) -> list[str]:
    """Return the texts of two tokens: one that starts workflows, and one that only reads."""
    program = ("shell", "--no-imports", "-c", PEOPLE)
    return project.manage(*program).split()


@contextmanager
def served(project: Project, name: str, settings: str = "", *arguments: str) -> Iterator[str]:
    project.write(f"shop/{name}.py", f"from shop.settings import *\n{settings}\n")
    given = arguments or ("-m", "daphne", "-p", "PORT", "studio.asgi:application")
    with project.serving(*given, DJANGO_SETTINGS_MODULE=f"shop.{name}") as url:
        yield url


def check(call: Caller, prefix: str, id: str) -> None:
    """Start an instance, read it where the answer says, and be refused as a program."""
    started = call("POST", f"{prefix}/workflows/greet/instances", {"params": "Ada", "id": id})
    assert started.status == 201, started
    assert started.headers["Location"] == f"{prefix}/workflows/greet/instances/{id}"
    assert call("GET", started.headers["Location"]).body["instance"]["params"] == "Ada"
    stranger = Caller(call.url, {})
    for path in (f"{prefix}/me", f"{prefix}/nothing", prefix, f"{prefix}/"):
        refused = stranger("GET", path)
        assert (refused.status, refused.body["code"]) == (401, "not_authenticated"), path
    assert call("GET", prefix).body["code"] == "not_found"


@pytest.mark.parametrize(
    ("name", "settings", "arguments", "prefix"),
    [
        ("api_plain", "", (), f"/{API}"),
        ("api_login", LOGIN_REQUIRED, (), f"/{API}"),
        ("api_atomic", 'DATABASES["default"]["ATOMIC_REQUESTS"] = True', (), f"/{API}"),
        ("api_script", 'FORCE_SCRIPT_NAME = "/app"', (), f"/app/{API}"),
        (
            "api_root",
            "",
            ("-m", "daphne", "-p", "PORT", "--root-path", "/app", "studio.asgi:application"),
            f"/app/{API}",
        ),
        ("api_language", f'ROOT_URLCONF = "shop.languages"\n{LOCALE}', (), f"/de/{API}"),
        (
            "api_wsgi",
            "",
            ("-m", "gunicorn", "--workers", "2", "--bind", "127.0.0.1:PORT", "shop.wsgi"),
            f"/{API}",
        ),
        ("api_runserver", "", ("manage.py", "runserver", "--noreload", "PORT"), f"/{API}"),
    ],
)
def test_it_works_below_any_prefix_and_under_any_server(
    project: Project, texts: list[str], name: str, settings: str, arguments: tuple[str, ...], prefix: str
) -> None:
    project.write("shop/languages.py", IN_LANGUAGES)
    with served(project, name, settings, *arguments) as url:
        check(Caller(url, {"Authorization": f"Bearer {texts[0]}"}), prefix, name.replace("_", "-"))


def test_denied_attempts_stay_where_views_are_transactions(project: Project, texts: list[str]) -> None:
    denied = "SELECT count(*) FROM engine_audit WHERE outcome = 'denied'"
    before = project.query(denied)
    with served(project, "api_denied", 'DATABASES["default"]["ATOMIC_REQUESTS"] = True') as url:
        eyes = Caller(url, {"Authorization": f"Bearer {texts[1]}"})
        answer = eyes("POST", f"/{API}/workflows/greet/instances", {"params": "x"}, Idempotency_Key="k")
    assert answer.status == 403
    assert project.query(denied) == [(before[0][0] + 1,)]


def test_large_bodies_are_for_those_who_are_known(project: Project, texts: list[str]) -> None:
    """A stranger's body ends at 64 KiB, before Django sees the request."""
    large = {"params": "x" * 1_000_000}
    with served(project, "api_large", OWN_USERS) as url:
        where = f"/{API}/workflows/greet/instances"
        for headers in ({"Authorization": f"Bearer {texts[0]}"}, {"X-Key": "operator"}):
            assert Caller(url, headers)("POST", where, large).status == 201
        for headers in ({"Authorization": "Bearer x"}, {"X-Key": "nobody"}, {}):
            assert Caller(url, headers)("POST", where, large).status == 413
        assert Caller(url, {"X-Key": "viewer"})("POST", where, {"params": "x"}).status == 403


class TestKilled:
    """A server that is killed while it does what a request with a key asks for, and the same request again."""

    SETTINGS = 'MIDDLEWARE.insert(0, "greetings.held.HoldMiddleware")'
    COUNT = "SELECT count(*) FROM engine_instance WHERE id = %r"

    def start(self, url: str, text: str, id: str) -> Answer | None:
        """Send the start; return None if the connection ends without an answer."""
        call = Caller(url, {"Authorization": f"Bearer {text}"})
        body = {"params": "Ada", "id": id}
        try:
            return call("POST", f"/{API}/workflows/greet/instances", body, Idempotency_Key=id)
        except (http.client.HTTPException, ConnectionError):
            return None

    def kill_when(self, project: Project, text: str, id: str, is_time: Callable[[], bool]) -> None:
        """Kill the server at that moment of the start."""
        from concurrent.futures import ThreadPoolExecutor

        with served_process(project, self.SETTINGS) as (process, url), ThreadPoolExecutor(1) as pool:
            answer = pool.submit(self.start, url, text, id)
            deadline = time.monotonic() + PATIENCE
            while not is_time():
                assert time.monotonic() < deadline, project.logs()
                time.sleep(0.01)
            process.kill()
            assert answer.result() is None

    def test_after_the_commit_the_retry_gets_the_answer(self, project: Project, texts: list[str]) -> None:
        (project.directory / "hold").touch()
        try:
            committed = [(1,)]
            self.kill_when(project, texts[0], "late", lambda: project.query(self.COUNT % "late") == committed)
        finally:
            (project.directory / "hold").unlink()
        with served_process(project, self.SETTINGS) as (_, url):
            answers = [self.start(url, texts[0], "late") for _ in range(2)]
        assert all(answer is not None and answer.status == 201 for answer in answers)
        assert [answer.headers["Idempotency-Replayed"] for answer in answers if answer] == ["true"] * 2
        assert answers[0].body["instance"]["id"] == "late"  # type: ignore[union-attr]
        assert project.query(self.COUNT % "late") == [(1,)]

    def test_before_the_commit_the_retry_does_everything(self, project: Project, texts: list[str]) -> None:
        import psycopg

        with psycopg.connect(**project._address(), autocommit=True) as keeper:
            keeper.execute(TRIGGER)
            keeper.execute("SELECT pg_advisory_lock(4711)")
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            self.kill_when(project, texts[0], "early", lambda: project.query(waiting) == [(1,)])
            keeper.execute("SELECT pg_advisory_unlock(4711)")
        with served_process(project, self.SETTINGS) as (_, url):
            answer = self.start(url, texts[0], "early")
        assert answer is not None
        assert (answer.status, "Idempotency-Replayed" in answer.headers) == (201, False)
        assert project.query(self.COUNT % "early") == [(1,)]
        assert project.query("SELECT count(*) FROM engine_audit WHERE instance_id = 'early'") == [(1,)]


@contextmanager
def served_process(project: Project, settings: str) -> Iterator[tuple[Any, str]]:
    """Serve the project with daphne; yield its process, which may be killed, and its address."""
    from studio.supervisor.address import answers
    from tests.live import free_port

    project.write("shop/api_killed.py", f"from shop.settings import *\n{settings}\n")
    port = free_port()
    arguments = ("-m", "daphne", "-p", str(port), "studio.asgi:application")
    with project.running(*arguments, DJANGO_SETTINGS_MODULE="shop.api_killed") as process:
        deadline = time.monotonic() + PATIENCE
        while not answers("127.0.0.1", port):
            assert process.poll() is None, project.logs()
            assert time.monotonic() < deadline, project.logs()
            time.sleep(0.1)
        yield process, f"http://127.0.0.1:{port}"
