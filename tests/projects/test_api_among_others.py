"""The HTTP API in a project that has middleware, users, limits and transactions of its own."""

from __future__ import annotations

import gzip
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from typing import Any

import pytest

from tests.projects import own_site
from tests.projects.project import Project

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

WORKFLOWS = """
from typing import Any
from engine import WorkflowStep, workflow


@workflow
async def keep(step: WorkflowStep, value: Any) -> Any:
    await step.wait_for_event("go")
    return value
"""
ISSUE = """
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from studio.access import tokens
from studio.access.permissions import Verb
User = get_user_model()
owner = User(**{User.USERNAME_FIELD: "olga@shop.example"})
owner.set_password("p-4711-xyz")
owner.save()
owner.groups.add(Group.objects.get(name="reprise-operator"))
print(tokens.issue("ci", by=owner, owner=owner, verbs=[Verb.VIEW, Verb.OPERATE]).text)
"""
# What sites put around all of their pages.
SETTINGS = """
APPEND_SLASH = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 100_000
DATABASES["default"]["ATOMIC_REQUESTS"] = True
CSRF_USE_SESSIONS = True
MIDDLEWARE = [
    "django.middleware.gzip.GZipMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    *MIDDLEWARE,
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
]
"""
API = "/ops/api/v1"
KEEP = "/workflows/keep/instances"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    body: bytes

    @property
    def document(self) -> Any:
        text = gzip.decompress(self.body) if self.headers["Content-Encoding"] == "gzip" else self.body
        return json.loads(text)


@dataclass(frozen=True)
class Program:
    url: str
    token: str

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        given |= {"Content-Type": "application/json"} if data is not None else {}
        given |= {"Authorization": f"Bearer {self.token}"} if self.token else {}
        request = urllib.request.Request(f"{self.url}{API}{path}", data, given, method=method)
        try:
            found = urllib.request.build_opener(_Unled).open(request, timeout=60)
        except urllib.error.HTTPError as error:
            found = error
        with found:
            return Answer(found.status, found.headers, found.read())


class _Unled(urllib.request.HTTPRedirectHandler):
    """Follow no redirect: programs do not."""

    def redirect_request(self, *_: Any) -> None:
        return None


@pytest.fixture(scope="module")
def project(bare_project: Project) -> Project:
    """The project with users by e-mail, a cache around all pages, and German numbers."""
    own_site.build(bare_project)
    bare_project.app("keeping", workflows=WORKFLOWS)
    bare_project.append("shop/settings.py", SETTINGS)
    bare_project.follow_readme()
    bare_project.manage("migrate", "-v", "0")
    bare_project.manage("collectstatic", "--noinput", "-v", "0")
    return bare_project


@pytest.fixture(scope="module")
def token(project: Project) -> str:
    return project.shell(ISSUE).split()[-1]


@pytest.fixture(scope="module")
def program(project: Project, token: str) -> Iterator[Program]:
    with serving(project) as url:
        yield Program(url, token)


@contextmanager
def serving(project: Project) -> Iterator[str]:
    command = ("-m", "daphne", "-p", "PORT", "studio.asgi:application")
    with project.serving(*command, DJANGO_SETTINGS_MODULE="shop.settings") as url:
        yield url


def test_a_token_opens_it_where_everybody_must_sign_in(program: Program) -> None:
    assert program.ask("GET", "/me").document["name"] == "olga@shop.example (token:ci)"
    stranger = Program(program.url, "")
    for path in ("/me", "/nothing", "", "/", "/me/", "/workflows/keep/"):
        for method in ("GET", "POST"):
            answer = stranger.ask(method, path, {} if method == "POST" else None)
            assert (answer.status, answer.headers["Content-Type"]) == (401, "application/problem+json"), path
            assert "Set-Cookie" not in answer.headers


def test_an_address_with_a_slash_at_its_end_is_another_one(program: Program) -> None:
    for path in ("/me/", "/workflows/keep/", f"{KEEP}/", "/nothing"):
        for method in ("GET", "POST"):
            assert program.ask(method, path, {} if method == "POST" else None).status == 404


def test_the_limit_of_the_site_on_forms_is_not_that_of_bodies(project: Project, program: Program) -> None:
    text = "ü" * ((1024 * 1024 - 2) // 2)
    body = json.dumps({"id": "large", "params": text}, ensure_ascii=False).encode()
    assert program.ask("POST", KEEP, body).status == 201
    read = program.ask("GET", f"{KEEP}/large/payloads/params")
    assert read.document == text
    assert program.ask("POST", KEEP, b" " * 5_000_000).status == 413


def test_an_answer_that_the_site_packs_has_the_state_that_an_action_names(program: Program) -> None:
    """Compression weakens an ETag, and a client can send only what it got."""
    made = program.ask("POST", KEEP, {"id": "packed", "params": "x" * 5_000})
    assert made.status == 201
    read = program.ask("GET", f"{KEEP}/packed", Accept_Encoding="gzip")
    assert read.headers["Content-Encoding"] == "gzip"
    assert read.headers["ETag"].startswith('W/"')
    assert program.ask("POST", f"{KEEP}/packed/pause", {}, If_Match='W/"1.0.paused.."').status == 412
    assert program.ask("POST", f"{KEEP}/packed/pause", {}, If_Match=read.headers["ETag"]).status == 200
    assert program.ask("POST", f"{KEEP}/packed/resume", {}, If_Match=read.headers["ETag"]).status == 412


def test_nothing_is_answered_from_a_cache(program: Program) -> None:
    program.ask("POST", KEEP, {"id": "fresh"})
    first = program.ask("GET", f"{KEEP}/fresh")
    assert program.ask("POST", f"{KEEP}/fresh/pause", {}).status == 200
    second = program.ask("GET", f"{KEEP}/fresh")
    assert [one.document["instance"]["status"] for one in (first, second)] == ["queued", "paused"]
    assert program.ask("GET", "/me", If_None_Match="*").status in (200, 304)
    assert Program(program.url, "").ask("GET", f"{KEEP}/fresh").status == 401


def test_a_request_that_fails_leaves_nothing_in_the_transaction_of_the_site(
    project: Project, program: Program
) -> None:
    keys = "SELECT count(*) FROM studio_idempotencykey WHERE name = 'k'"
    rows = f"SELECT (SELECT count(*) FROM engine_instance), ({keys})"
    before = project.query(rows)
    assert program.ask("POST", KEEP, {"id": "a/b"}, Idempotency_Key="k").status == 422
    assert project.query(rows) == [(before[0][0], 0)]  # the key is free for the request as it should be
    for _ in range(2):
        assert program.ask("POST", KEEP, {"id": "kept"}, Idempotency_Key="kept").status == 201
    assert project.query("SELECT count(*) FROM engine_instance WHERE id = 'kept'") == [(1,)]


def test_numbers_and_times_are_those_of_json_in_any_language(project: Project, program: Program) -> None:
    project.query("SELECT setval(pg_get_serial_sequence('engine_instance', 'key'), 5000)")
    for n in range(3):
        assert program.ask("POST", KEEP, {"id": f"n{n}", "params": 1234567.5}).status == 201
    listed = program.ask("GET", "/instances?limit=1", Accept_Language="de").document
    assert listed["next_cursor"].isdigit()
    assert listed["instances"][0]["created_at"].endswith("+00:00")
    assert program.ask("GET", f"{KEEP}/n0/payloads/params").body == b"1234567.5"
    assert "Traceback" not in project.logs()
