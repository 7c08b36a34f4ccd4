"""What a person prefers to see: every page is drawn by it from the first byte on."""

from __future__ import annotations

import pytest
from django.test import Client

from studio.accounts.preferences import zones

pytestmark = pytest.mark.django_db

CHOSEN = {"theme": "dark", "density": "compact", "zone": "Asia/Kathmandu"}


def root(client: Client, where: str = "/") -> str:
    page = client.get(where).content.decode()
    return page[page.index("<html") : page.index(">", page.index("<html"))]


def test_what_is_chosen_is_on_every_page(viewer: Client) -> None:
    answer = viewer.post("/preferences/", CHOSEN)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/preferences/")
    page = viewer.get("/preferences/").content.decode()
    assert "Saved your preferences." in page
    assert "<option selected>Asia/Kathmandu</option>" in page
    assert page.count(" checked") == 2
    for where in ("/", "/instances/", "/tv/", "/nowhere/"):
        for name, value in CHOSEN.items():
            assert f'data-{name}="{value}"' in root(viewer, where), where


def test_without_a_choice_the_browser_decides(viewer: Client) -> None:
    assert {'data-theme="system"', 'data-density="normal"', 'data-zone=""'} <= set(root(viewer).split())
    viewer.post("/preferences/", CHOSEN)
    viewer.post("/preferences/", {"theme": "system", "density": "normal", "zone": ""})
    assert 'data-zone=""' in root(viewer)


def test_switching_the_theme_leaves_the_rest(viewer: Client) -> None:
    viewer.post("/preferences/", CHOSEN)
    viewer.post("/theme/", {"theme": "light"})
    assert {'data-theme="light"', 'data-zone="Asia/Kathmandu"'} <= set(root(viewer).split())


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("zone", "Mars/Olympus", "Mars/Olympus is no time zone that this server knows."),
        ("zone", "../../etc/passwd", "../../etc/passwd is no time zone that this server knows."),
        ("density", "tiny", "tiny is no density. Choose normal, compact, comfortable."),
        ("density", "", "Nothing is no density."),
        ("theme", '"><script>', "&quot;&gt;&lt;script&gt; is no theme. Choose system, light, dark."),
    ],
)
def test_a_value_that_does_not_exist_is_named_and_nothing_is_saved(
    viewer: Client, name: str, value: str, problem: str
) -> None:
    answer = viewer.post("/preferences/", CHOSEN | {name: value})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert problem in page
    assert "Not saved" in page
    assert not [one for one in answer.cookies if one.startswith("studio-")]
    if name != "zone":
        assert "<option selected>Asia/Kathmandu</option>" in page


def test_a_cookie_that_somebody_has_changed_counts_as_none(viewer: Client) -> None:
    for name in CHOSEN:
        viewer.cookies[f"studio-{name}"] = "x' onload=alert(1)"
    assert {'data-theme="system"', 'data-density="normal"', 'data-zone=""'} <= set(root(viewer).split())


def test_zones_are_those_of_places_and_utc() -> None:
    assert {"", "UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"} <= zones()
    assert not {"Etc/GMT+5", "EST", "localtime"} & zones()
