"""Reprise in a project that has its own users, pages, styles, names, headers and cache: nothing of it changes."""

from __future__ import annotations

import hashlib
import html
import re
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.chaos.sockets import Socket, SocketClosedError
from tests.projects import own_site
from tests.projects.project import PATIENCE, Project
from tests.projects.visitor import Page, Visitor

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

PASSWORD = "p-4711-xyz"
PUBLIC = ("/", "/public/", "/workflows/", "/login/", "/nowhere/", "/admin/login/")
LONG = "x" * 60 + "@" + ".".join(["y" * 60, "z" * 60]) + ".example"  # longer than a user name may be

PEOPLE = f"""
from django.contrib.auth.models import Group
from accounts.models import User
for name, group in (("ann", "approver"), ("oscar", "operator"), ("vera", "viewer"), ("dora", "viewer"), ("tom", "")):
    user = User.objects.create_user(name + "@shop.example", "{PASSWORD}")
    if group:
        user.groups.add(Group.objects.get(name="reprise-" + group))
User.objects.create_user("{LONG}", "{PASSWORD}").groups.add(Group.objects.get(name="reprise-operator"))
"""
LINK = re.compile(r'\b(?<!-)(?:href|src|action|hx-get|hx-post|hx-ws:connect|formaction)="([^"]*)"')
PAGE = re.compile(r'<a\b[^>]*? href="([^"]*)"')
# The list of instances in all its orders and searches of several terms, and all weeks: there is no end of them.
ENDLESS = re.compile(r"/ops/instances/\?.*[+&]|.*[?&]week=")
RENEWED = re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"')


class Before(NamedTuple):
    """What the project's pages were like without Reprise."""

    pages: dict[str, object]
    styles: str


def look_at(visitor: Visitor) -> dict[str, object]:
    """Return what people get of the public pages."""
    return {path: essence(visitor.get(path)) for path in PUBLIC}


def essence(page: Page) -> object:
    """Return a page without what differs each time."""
    skipped = ("Date", "Expires", "Last-Modified", "Content-Length", "Set-Cookie")
    headers = sorted((name, value) for name, value in page.headers.items() if name not in skipped)
    return page.status, page.path, RENEWED.sub("", page.text), headers


def styles_of(project: Project) -> str:
    (file,) = (project.directory / "collected/css").glob("base.*.css")
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def before(bare_project: Project) -> Before:
    own_site.build(bare_project)
    with bare_project.serving("-m", "daphne", "-p", "PORT", "shop.asgi:application", **ENVIRONMENT) as url:
        return Before(look_at(Visitor(url)), styles_of(bare_project))


ENVIRONMENT = {"DJANGO_SETTINGS_MODULE": "shop.settings"}


@pytest.fixture(scope="module")
def project(bare_project: Project, before: Before) -> Project:
    bare_project.follow_readme()
    bare_project.manage("migrate", "-v", "0")
    bare_project.manage("collectstatic", "--noinput", "-v", "0")
    bare_project.shell(PEOPLE)
    # Numbers of a site that has been used: German puts a point into them.
    bare_project.query("SELECT setval(pg_get_serial_sequence('engine_instance', 'key'), 5000)")
    return bare_project


@pytest.fixture(scope="module")
def url(project: Project) -> Iterator[str]:
    with (
        project.serving("-m", "daphne", "-p", "PORT", "studio.asgi:application", **ENVIRONMENT) as url,
        project.working(),
    ):
        yield url


def read_to_the_end(socket: Socket) -> None:
    while True:
        socket.read()


def signed_in(url: str, name: str, *, path: str = "/ops/") -> Visitor:
    visitor = Visitor(url)
    page = visitor.sign_in(name if "@" in name else f"{name}@shop.example", PASSWORD, path=path)
    assert (page.status, page.path) == (200, path)
    return visitor


def test_the_checks_find_nothing_wrong(project: Project) -> None:
    assert (
        project.manage("check", "--database", "default")
        == "System check identified no issues (0 silenced).\n"
    )


def test_no_page_name_header_or_file_of_the_project_changes(
    project: Project, before: Before, url: str
) -> None:
    assert look_at(Visitor(url)) == before.pages
    assert styles_of(project) == before.styles
    assert "max-age=600" in Visitor(url).get("/public/").headers["Cache-Control"]


def test_people_sign_in_on_the_projects_page_and_come_back(url: str) -> None:
    visitor = Visitor(url)
    for asked in ("/ops/instances/?status=errored", "/ops/sign-in/?next=/ops/audit/"):
        assert "The shop's sign-in" in html.unescape(visitor.get(asked).text)
    page = visitor.sign_in("vera@shop.example", PASSWORD, path="/ops/instances/?status=errored")
    assert (page.status, page.path) == (200, "/ops/instances/?status=errored")
    assert visitor.get("/ops/password/").status == 404  # passwords are the project's business
    left = visitor.post("/ops/sign-out/", page)
    assert (left.path, "<h1>Shop</h1>" in left.text) == ("/", True)
    assert visitor.get("/ops/").path == "/login/?next=/ops/"


def test_everything_on_every_page_stays_below_the_prefix(url: str) -> None:
    visitor = signed_in(url, "oscar")
    started = visitor.post("/ops/workflows/refund/start/", params='"A-1"', id="one")
    assert started.path == "/ops/workflows/refund/instances/one/"
    seen: set[str] = set()
    left = ["/ops/", started.path, "/ops/nowhere/", "/ops/workflows/refund/instances/none/"]
    while left:
        path = left.pop()
        seen.add(path)
        page = visitor.get(path)
        assert page.path.startswith("/ops/"), path
        assert page.status == (404 if "/no" in path else 200), path
        if page.text.count('class="shop"'):
            assert path == "/ops/nowhere/"  # the project's own page for an address that nobody has
            continue
        for link in map(html.unescape, LINK.findall(page.text)):
            assert link.startswith(("/ops/", "/static/studio/", "#", "?", "data:")), (path, link)
        pages = {html.unescape(link).partition("#")[0] for link in PAGE.findall(page.text)}
        ours = {link for link in pages if link.startswith("/ops/") and not ENDLESS.match(link)}
        left += sorted(ours - seen - set(left))
    assert {"/ops/audit/", "/ops/schedules/", "/ops/workflows/refund/start/", "/ops/approvals/"} <= seen


def test_the_static_files_of_every_page_are_there_hashed(url: str) -> None:
    visitor = signed_in(url, "vera")
    files = [link for link in LINK.findall(visitor.get("/ops/").text) if link.startswith("/static/")]
    assert len(files) > 10
    for file in files:
        assert re.search(r"\.[0-9a-f]{12}\.\w+", file)
        assert visitor.get(file).status == 200


def test_a_request_is_answered_by_the_person_with_that_address(url: str, project: Project) -> None:
    oscar, ann = signed_in(url, "oscar"), signed_in(url, "ann")
    started = oscar.post("/ops/workflows/refund/start/", params='"A-2"', id="two")
    project.wait_for("SELECT status FROM engine_instance WHERE id = 'two'", [("waiting",)])
    with ann.watch(ann.get(started.path)) as socket:
        page = ann.get(started.path)
        form = re.search(r'action="(/ops/workflows/refund/instances/two/requests/\d+/answer/)"', page.text)
        assert form is not None, page.text
        generation = {"place": "instance", "generation": "1"}
        assert ann.post(form[1], page, answer="true", **generation).path == started.path
        while "complete" not in socket.read():
            pass
    project.wait_for("SELECT output::text FROM engine_instance WHERE id = 'two'", [('"A-2"',)])
    trail = ann.get("/ops/audit/?instance=two").text
    assert "oscar@shop.example" in trail
    assert "ann@shop.example" in trail


def test_an_address_may_be_longer_than_the_trails_column(url: str) -> None:
    visitor = signed_in(url, LONG)
    assert visitor.post("/ops/workflows/refund/start/", params='"A-3"', id="long").status == 200
    again = visitor.post("/ops/workflows/refund/start/", params='"A-3"', id="long")
    assert again.path == "/ops/workflows/refund/instances/long/"


def test_groups_grant_access_and_nothing_else_does(url: str) -> None:
    tom = Visitor(url)
    assert tom.sign_in("tom@shop.example", PASSWORD).status == 403
    vera = signed_in(url, "vera")
    assert vera.post("/ops/workflows/refund/start/", vera.get("/ops/"), params='"A-4"').status == 403


def test_a_deactivated_person_loses_pages_and_socket_within_seconds(url: str, project: Project) -> None:
    dora = signed_in(url, "dora")
    page = dora.get("/ops/instances/")
    with dora.watch(page) as socket:
        socket.read()
        project.query(
            "UPDATE accounts_user SET is_active = false WHERE email = 'dora@shop.example' RETURNING 1"
        )
        began = time.monotonic()
        with pytest.raises(SocketClosedError, match="4401"):
            read_to_the_end(socket)
        assert time.monotonic() - began < PATIENCE / 2
    # Not even from the site's cache of pages.
    assert dora.get("/ops/instances/").path == "/login/?next=/ops/instances/"


def test_the_sites_number_format_leaves_ids_and_addresses_alone(url: str) -> None:
    visitor = signed_in(url, "oscar")
    visitor.post("/ops/workflows/refund/start/", params='"A-6"', id="six")
    assert re.search(r'id="i-5\d\d\d"', visitor.get("/ops/instances/").text)


def test_messages_of_the_project_and_of_the_studio_do_not_mix(url: str) -> None:
    visitor = signed_in(url, "oscar")
    page = visitor.get("/greet/?next=/ops/")
    assert page.path == "/ops/"
    assert "A message of the shop" not in page.text
    assert "A message of the shop" in visitor.get("/login/").text
    form = visitor.get("/ops/workflows/refund/start/")
    done = visitor.post("/ops/workflows/refund/start/", form, params='"A-5"', id="five")
    assert "Started five." in done.text
    assert "Started five." not in visitor.get(done.path).text
