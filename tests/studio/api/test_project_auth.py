"""The project's own authentication: what the setting API_AUTH may name, and what it opens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from ninja.errors import AuthenticationError, AuthorizationError
from ninja.security import APIKeyHeader, HttpBasicAuth, HttpBearer, SessionAuth

from engine.models import Audit, Instance
from studio.api import project_auth
from tests.studio import factories
from tests.studio.api.conftest import PREFIX, Program

pytestmark = pytest.mark.django_db

HERE = "tests.studio.api.test_project_auth"


def by_header(request: HttpRequest) -> User | None:
    return User.objects.filter(username=request.headers.get("X-Name", "")).first()


def by_body(request: HttpRequest) -> User | None:
    """Signs the body, as some projects do."""
    return by_header(request) if request.body is not None else None


async def slowly(request: HttpRequest) -> User | None:
    return await User.objects.filter(username=request.headers.get("X-Name", "")).afirst()


class Keys(APIKeyHeader):
    param_name = "X-Key"

    def authenticate(self, request: HttpRequest, key: str | None) -> User | None:
        return User.objects.filter(username=key).first()


class Basic(HttpBasicAuth):
    def authenticate(self, request: HttpRequest, username: str, password: str) -> User | None:
        found = User.objects.filter(username=username).first()
        return found if found and found.check_password(password) else None


class Bearer(HttpBearer):
    async def authenticate(self, request: HttpRequest, token: str) -> User | None:
        return await User.objects.filter(username=token).afirst()


keys = Keys()


def signed_in(request: HttpRequest) -> Any:
    return request.user


def by_cookie(request: HttpRequest) -> Any:
    return User.objects.filter(username=request.COOKIES.get("name", "")).first()


def text(request: HttpRequest) -> str:
    return "ada"


def refuses(request: HttpRequest) -> Any:
    raise AuthenticationError


def forbids(request: HttpRequest) -> Any:
    raise AuthorizationError


def breaks(request: HttpRequest) -> Any:
    raise ZeroDivisionError("in the project's code")


no_function = 5
session = SessionAuth()


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    project_auth.loaded.cache_clear()
    yield
    project_auth.loaded.cache_clear()


def named(*names: str) -> Any:
    return override_settings(REPRISE={"API_AUTH": [f"{HERE}.{name}" for name in names]})


def get(path: str = "/me", **headers: str) -> HttpResponse:
    return Client().get(
        PREFIX + path, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


WAYS = [
    ("by_header", {"X_Name": "ada"}),
    ("slowly", {"X_Name": "ada"}),
    ("Keys", {"X_Key": "ada"}),
    ("keys", {"X_Key": "ada"}),
    ("Bearer", {"Authorization": "Bearer ada"}),
    ("Basic", {"Authorization": "Basic YWRhOmEgbG9uZyBhbmQgcGxhaW4gcGFzc3dvcmQ="}),
]


@pytest.mark.parametrize(("name", "headers"), WAYS)
def test_a_function_an_instance_and_a_class_open_the_api(name: str, headers: dict[str, str]) -> None:
    factories.person("operator", "ada")
    assert get(**headers).status_code == 401
    with named(name):
        answer = get(**headers)
        assert answer.status_code == 200
        assert json.loads(answer.content) == {
            "name": "ada",
            "verbs": ["approve", "operate", "view"],
            "workflows": ["*"],
            "expires_at": None,
        }
        assert get().status_code == 401
        assert get(**{key: value[:-3] for key, value in headers.items()}).status_code == 401


@named("by_header")
def test_the_permissions_of_the_user_decide() -> None:
    factories.person("viewer", "vic"), factories.person("nobody", "ned"), factories.person("operator", "oli")
    where = f"{PREFIX}/workflows/tick/instances"
    kind = "application/json"
    statuses = [
        Client().post(where, {}, kind, headers={"X-Name": name}).status_code for name in ("oli", "vic", "ned")
    ]
    assert statuses == [201, 403, 403]
    assert Instance.objects.get().started_by == "oli"
    assert Audit.objects.get(outcome="denied").actor == "vic"


@named("by_header")
def test_inactive_users_are_nobody() -> None:
    ada = factories.person("operator", "ada")
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert get(X_Name="ada").status_code == 401


@named("by_header", "keys")
def test_tokens_go_on_working_and_the_first_that_knows_the_sender_counts(program: Program) -> None:
    factories.person("operator", "ada"), factories.person("viewer", "vic")
    assert program.get("/me").status_code == 200
    assert json.loads(get(X_Key="vic").content)["name"] == "vic"
    assert json.loads(get(X_Name="ada", X_Key="vic").content)["name"] == "ada"


def by_raw_cookie(request: HttpRequest) -> Any:
    return User.objects.filter(username=request.headers.get("Cookie", "").rpartition("name=")[2]).first()


def by_session(request: HttpRequest) -> Any:
    return User.objects.filter(pk=request.session.get("_auth_user_id", 0)).first()


def made_up(request: HttpRequest) -> Any:
    return User(username=request.headers.get("X-Name", ""), is_superuser=True)


def not_permitted(request: HttpRequest) -> Any:
    raise PermissionDenied("Not from this network.")


def suspicious(request: HttpRequest) -> Any:
    raise SuspiciousOperation


class SetsUser:
    """A middleware of the project that knows people by a cookie of its own."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        if "name" in request.COOKIES:
            request.user = User.objects.get(username=request.COOKIES["name"])
        return self.get_response(request)


def test_a_middleware_that_reads_a_cookie_opens_nothing(client: Client, settings: Any) -> None:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{HERE}.SetsUser"]
    factories.person("admin", "ada")
    client.cookies["name"] = "ada"
    with named("signed_in"):
        assert client.get(f"{PREFIX}/me").status_code == 401


@named("made_up")
def test_a_user_who_is_not_stored_is_nobody() -> None:
    """The keys and limits of one would be those of another."""
    assert get(X_Name="ada").status_code == 401


@pytest.mark.parametrize("name", ["signed_in", "by_cookie", "by_raw_cookie", "by_session"])
def test_cookies_are_hidden(client: Client, name: str) -> None:
    """E28: a page of another site could send them."""
    client.force_login(factories.person("admin", "ada"))
    client.cookies["name"] = "ada"
    with named(name):
        assert client.get(f"{PREFIX}/me").status_code == 401


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("text", 401),
        ("refuses", 401),
        ("forbids", 403),
        ("breaks", 500),
        ("not_permitted", 403),
        ("suspicious", 400),
    ],
)
def test_what_it_raises_or_returns_is_no_way_in(name: str, status: int) -> None:
    with named(name):
        answer = get()
        assert answer.status_code == status
        assert answer["Content-Type"] == "application/problem+json"
        assert "project's code" not in answer.content.decode()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nothing", "ImportError"),
        ("no_function", "cannot be called"),
        ("session", "It reads a cookie"),
        ("Program", "TypeError"),
    ],
)
def test_a_check_names_what_cannot_be_used(name: str, why: str) -> None:
    with named("by_header", name):
        (found,) = [one for one in run_checks(tags=["studio"]) if one.id == "studio.E011"]
    assert f"{HERE}.{name}" in found.msg
    assert why in found.msg


def test_a_check_is_content_with_the_others() -> None:
    with named(*{name for name, _ in WAYS}):
        assert [one for one in run_checks(tags=["studio"]) if one.id == "studio.E011"] == []


@named("by_body")
def test_one_that_has_read_the_body_leaves_it_to_the_operation() -> None:
    factories.person("operator", "ada")

    def start(body: bytes, **headers: str) -> int:
        kind = headers.pop("kind", "application/json")
        where = f"{PREFIX}/workflows/tick/instances"
        return Client().post(where, body, kind, headers={"X-Name": "ada", **headers}).status_code

    assert start(b'{"id":"one"}') == 201
    assert start(b"", kind="text/plain") == start(b" ") == 201  # an empty body is an empty object
    assert start(b'{"id":"one"}') == 409
    assert start(b"{}", kind="text/plain") == 415
