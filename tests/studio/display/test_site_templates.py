"""TEMPLATES of a site: nothing in it changes the Studio's pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpRequest
from django.test import Client

from tests.studio import factories

pytestmark = pytest.mark.django_db

EVIL = "<img src=x onerror=alert(1)>"
PAGES = (
    "/",
    "/password/",
    "/instances/?q=%3Cimg",
    "/workflows/orders/instances/one/",
    "/workflows/orders/instances/none/",
    "/audit/",
    "/_f/live/?topic=home",
)


def theirs(request: HttpRequest) -> dict[str, str]:
    """A context processor of the site."""
    return {"topic": "theirs", "title": "theirs", "user": "theirs", "pieces": "theirs"}


@pytest.fixture
def site(settings: Any, tmp_path: Path) -> None:
    """A site whose templates are of another kind, and in the place of ours."""
    (tmp_path / "studio" / "frame").mkdir(parents=True)
    (tmp_path / "studio" / "frame" / "base.html").write_text("theirs")
    processors = [*settings.TEMPLATES[0]["OPTIONS"]["context_processors"], f"{__name__}.theirs"]
    options = {"autoescape": False, "string_if_invalid": "INVALID %s", "context_processors": processors}
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path], "OPTIONS": options}]


def seen(client: Client, where: str) -> str:
    """Return a page without what differs each time."""
    text = client.get(where).content.decode()
    tokens = r'name="csrfmiddlewaretoken" value="[^"]*"|X-CSRFTOKEN": "[^"]*"|value="[0-9a-f-]{36}"'
    return re.sub(rf"{tokens}|<time.*?</time>|[0-9.]+", "", text)


def test_pages_are_the_same_with_and_without_it(operator: Client, request: pytest.FixtureRequest) -> None:
    instance = factories.instance("waiting", id="one", params={EVIL: EVIL}, started_by=EVIL)
    factories.step(instance, EVIL, "waiting", kind="event", event_types=[EVIL])
    before = {where: seen(operator, where) for where in PAGES}
    request.getfixturevalue("site")
    for where in PAGES:
        assert seen(operator, where) == before[where], where


def test_what_the_sign_in_page_is_asked_for_stays_text(client: Client, site: None) -> None:
    page = client.get("/sign-in/", {"next": f'/"{EVIL}'}).content.decode()
    assert "&lt;img" in page
    assert EVIL not in page
    again = client.post(
        "/sign-in/", {"username": EVIL, "password": "x", "next": f'/"{EVIL}'}
    ).content.decode()
    assert EVIL not in again
