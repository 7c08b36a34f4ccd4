"""The headers of every response."""

from __future__ import annotations

import json
import re
from http.cookies import SimpleCookie
from typing import Any, ClassVar

import pytest
from django.conf import settings
from django.test import Client
from django.urls import path

from studio import site
from studio.frame.joined import FILES
from studio.server.headers import refusal_of
from tests.studio import factories

pytestmark = pytest.mark.django_db


def broken(request: object) -> None:
    raise RuntimeError("a secret of the server")


class Urls:
    """The Studio's addresses and one that breaks."""

    urlpatterns: ClassVar[list[Any]] = [*site.urlpatterns, path("broken/", broken)]
    handler400, handler403, handler404 = site.handler400, site.handler403, site.handler404
    handler500 = site.handler500


ANSWERS = [
    ("/static/studio/frame/base.css", 200),
    ("/sign-in/", 302),
    ("/", 200),
    ("/instances/", 200),
    ("/_f/live/?topic=home", 200),
    ("/workflows/orders/instances/order-1/", 200),
    ("/workflows/orders/instances/order-1/payload/params/", 200),
    ("/nowhere/", 404),
    ("/workflows/orders/instances/order-1/pause/", 405),
    ("/_f/live/?topic=nonsense", 400),
    ("/" + "x" * 10_000, 414),
    ("/broken/", 500),
]


@pytest.fixture
def client(operator: Client, settings) -> Client:  # type: ignore[no-untyped-def]
    settings.ROOT_URLCONF = Urls
    factories.instance(id="order-1")
    operator.raise_request_exception = False
    return operator


@pytest.mark.parametrize(("where", "status"), ANSWERS)
def test_every_answer_carries_them(client: Client, where: str, status: int) -> None:
    answer = client.get(where)
    answer.getvalue()  # one is a file, and closed at its end
    assert answer.status_code == status
    headers = answer.headers
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "no-store" in headers["Cache-Control"] or where.startswith("/static/")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers


def test_the_policy_allows_nothing_inline_and_nothing_foreign(client: Client) -> None:
    policy = dict(
        part.strip().split(" ", 1)
        for part in client.get("/").headers["Content-Security-Policy"].split(";")
        if part
    )
    assert policy["default-src"] == "'none'"
    assert (policy["script-src"], policy["style-src"]) == ("'self'", "'self'")
    assert (policy["base-uri"], policy["form-action"]) == ("'none'", "'self'")
    assert "unsafe" not in str(policy)


@pytest.mark.parametrize(
    ("static_url", "source"),
    [
        ("https://files.example/s/", "https://files.example/s/studio/"),
        ("//files.example/", "files.example/studio/"),
        ("https://files.example/a;b, c/", "https://files.example/a%3Bb%2C%20c/studio/"),
        ("/s/", None),
        ("http://[::1]:8001/s/", None),
    ],
)
def test_files_of_another_host_are_allowed_from_the_studios_folder_only(
    client: Client,
    settings,  # type: ignore[no-untyped-def]
    static_url: str,
    source: str | None,
) -> None:
    settings.STATIC_URL = static_url
    policy = client.get("/").headers["Content-Security-Policy"]
    given = f" {source}" if source else ""
    assert f"script-src 'self'{given}; style-src 'self'{given}; img-src 'self' data:{given}; " in policy
    assert f"font-src 'self'{given}; connect-src 'self'" in policy


def test_icons_are_always_on_the_pages_own_host(client: Client, settings) -> None:  # type: ignore[no-untyped-def]
    settings.STATIC_URL = "https://files.example/s/"
    icons = set(re.findall(r'<use href="([^"#]+)#', client.get("/").content.decode()))
    (address,) = icons
    answer = client.get(address)
    assert answer.headers["Content-Type"] == "image/svg+xml"
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.content == (settings.BASE_DIR / "static/studio/vendor/lucide.svg").read_bytes()


def test_a_download_cannot_run(client: Client) -> None:
    answer = client.get("/workflows/orders/instances/order-1/payload/params/")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="order-1-params.json"'
    assert answer.headers["Content-Type"] == "application/json"
    assert "sandbox" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("where", ["/", "/instances/", "/sign-in/", "/workflows/orders/instances/order-1/"])
def test_pages_hold_no_inline_script_style_or_handler(client: Client, where: str) -> None:
    page = client.get(where).content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|hx-on|hx-vals=.js:", page)
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)


def test_htmx_neither_evaluates_nor_leaves_the_site(client: Client) -> None:
    page = client.get("/").content.decode()
    config = json.loads(re.search(r"name=\"htmx-config\" content='([^']+)'", page)[1])  # type: ignore[index]
    assert (config["mode"], config["includeIndicatorCSS"]) == ("same-origin", False)
    assert "open" in config["morphIgnore"]


def test_an_error_page_tells_nothing_of_the_server(client: Client) -> None:
    page = client.get("/broken/").content.decode()
    assert "a secret of the server" not in page
    assert re.search(r"Reference <code>[0-9a-f]{12}</code>", page)


def test_a_broken_cookie_is_deleted_as_it_was_set(settings) -> None:  # type: ignore[no-untyped-def]
    settings.SESSION_COOKIE_NAME, settings.SESSION_COOKIE_SECURE = "__Host-session", True
    settings.CSRF_COOKIE_NAME, settings.CSRF_COOKIE_SECURE = "token", False
    settings.CSRF_COOKIE_PATH, settings.CSRF_COOKIE_DOMAIN = "/studio/", "example.com"
    deleted = {}
    for name in ("__Host-session", "token"):
        headers = [(b"cookie", f'{name}="\\000aaaaaaaaaa"'.encode())]
        refusal = refusal_of({"type": "http", "headers": headers})
        assert refusal is not None
        ((header, value),) = refusal.headers
        assert header == b"set-cookie"
        deleted[name] = SimpleCookie(value.decode())[name]
    session, token = deleted["__Host-session"], deleted["token"]
    assert (session.value, session["max-age"], session["path"]) == ("", "0", "/")
    assert (session["secure"], session["domain"]) == (True, "")
    assert (token.value, token["max-age"], token["path"]) == ("", "0", "/studio/")
    assert (token["secure"], token["domain"]) == ("", "example.com")


def files_of(script: str) -> list[str]:
    """Return what a script of a page consists of."""
    joined = FILES.get(f"{script.removeprefix('/_f/joined/')}.js", (script,))
    return [file.removesuffix(".js") for file in joined]


def test_the_script_that_listens_is_read_before_the_one_that_opens_the_socket(client: Client) -> None:
    """A deferred script that comes late misses the connection, and the page says "Connecting" forever."""
    before, after = set[str](), set[str]()
    for place in (
        "/instances/",
        "/workflows/orders/instances/order-1/",
        "/workflows/process-order/start/",
        "/workflows/process-order/start/many/",
        "/workflows/process-order/code/",
        "/schedules/?view=week",
        "/tv/",
        "/tokens/",
        "/charts/",
    ):
        page = client.get(place).content.decode()
        scripts = re.findall(r'<script src="(?:/static/)?(\S+?)\.(?:[0-9a-f]{12}\.)?js[?"]', page)
        assert scripts[0] == "/_f/joined/frame"
        scripts = [one for script in scripts for one in files_of(script)]
        opens = scripts.index("studio/vendor/studio-htmx")
        before.update(scripts[:opens])
        after.update(scripts[opens + 1 :])
    root = settings.BASE_DIR / "static"
    ours = {
        str(file.relative_to(root).with_suffix(""))
        for file in (root / "studio").rglob("*.js")
        if "vendor" not in file.parts
        and "api" not in file.parts  # on a page of their own
        and file.stem not in ("mentions", "jump", "tips", "pane-keys")  # loaded when they are wanted
        and file.stem
        not in ("values", "drawing", "plots", "editor", "drafts")  # loaded when the page is there
    }
    assert before == ours
    assert not after
