"""Saved views: who has them, what their addresses show, and what cannot be saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from engine.models import Audit
from studio.models import SavedView
from studio.saved_views import counts, rules
from tests.studio import factories

pytestmark = pytest.mark.django_db

SignIn = Callable[..., Client]
RUNNING = {"name": "Mine", "query": "status:running", "sort": "", "columns": "", "for": "personal"}


@pytest.fixture(autouse=True)
def _nothing_counted() -> Iterator[None]:
    counts.forget()
    yield
    counts.forget()


def save(client: Client, status: int = 302, **given: Any) -> str:
    answer = client.post("/instances/views/", RUNNING | given)
    assert answer.status_code == status, answer.content.decode()
    return answer.content.decode()


def page_of(client: Client, where: str, status: int = 200) -> str:
    answer = client.get(where)
    assert answer.status_code == status
    return answer.content.decode()


def test_the_address_of_a_view_shows_its_search(viewer: Client) -> None:
    running, queued = factories.instance("running"), factories.instance("queued")
    save(viewer)
    page = page_of(viewer, f"/instances/?view={SavedView.objects.get().slug}")
    assert running.id in page
    assert f">{queued.id}<" not in page
    assert "Update" not in page


def test_a_search_changed_in_a_view_can_be_saved_in_it(viewer: Client) -> None:
    save(viewer)
    view = SavedView.objects.get()
    where = f"/instances/?view={view.slug}&query=status:queued"
    assert f"/instances/views/{view.slug}/update/" in page_of(viewer, where)
    viewer.post(f"/instances/views/{view.slug}/update/", {"query": "status:queued"})
    view.refresh_from_db()
    assert view.query == "status:queued"


def test_a_personal_view_is_only_for_its_owner(viewer: Client, operator: Client) -> None:
    save(viewer)
    slug = SavedView.objects.get().slug
    page = page_of(operator, f"/instances/?view={slug}")
    assert "This view is personal" in page
    assert ">Mine<" not in page
    for action in ("rename", "update", "move", "delete"):
        assert operator.post(f"/instances/views/{slug}/{action}/", RUNNING).status_code == 404
    assert SavedView.objects.get().name == "Mine"


def test_a_shared_view_needs_an_operator_and_is_in_the_audit_trail(viewer: Client, operator: Client) -> None:
    save(viewer, status=403, **{"for": "shared"})
    assert not SavedView.objects.exists()
    save(operator, name="Ours", **{"for": "shared"})
    slug = SavedView.objects.get().slug
    assert ">Ours<" in page_of(viewer, "/instances/")
    assert viewer.post(f"/instances/views/{slug}/delete/").status_code == 403
    assert viewer.post(f"/instances/views/{slug}/rename/", {"name": "x"}).status_code == 403
    operator.post(f"/instances/views/{slug}/rename/", {"name": "All ours"})
    operator.post(f"/instances/views/{slug}/delete/")
    assert [(one.verb, one.outcome) for one in Audit.objects.order_by("key")] == [
        ("view-create", "denied"),
        ("view-create", "done"),
        ("view-delete", "denied"),
        ("view-change", "denied"),
        ("view-change", "done"),
        ("view-delete", "done"),
    ]
    page_of(operator, "/audit/")


def test_a_deleted_view_falls_back_to_all(viewer: Client) -> None:
    save(viewer)
    view = SavedView.objects.get()
    assert "Delete Mine?" in page_of(viewer, f"/instances/views/?delete={view.slug}")
    viewer.post(f"/instances/views/{view.slug}/delete/")
    assert not SavedView.objects.exists()
    assert "no longer exists. All instances are shown." in page_of(viewer, f"/instances/?view={view.slug}")
    page_of(viewer, f"/instances/?view={'x' * 500}%00")


def test_views_are_ordered(viewer: Client) -> None:
    for name in ("a", "b", "c"):
        save(viewer, name=name)
    slug = SavedView.objects.get(name="c").slug
    viewer.post(f"/instances/views/{slug}/move/", {"to": "up"})
    assert [one.name for one in SavedView.objects.order_by("position")] == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": " "}, "A name has 1 to 60 characters"),
        ({"name": "x" * 61}, "A name has 1 to 60 characters"),
        ({"name": "a\0b"}, "A name has 1 to 60 characters"),
        ({"name": "\u200e"}, "A name has 1 to 60 characters"),
        ({"query": ""}, "All shows this already"),
        ({"query": "started:soon"}, "started:soon"),
        ({"sort": "x; drop"}, "no such order"),
        ({"columns": "a,b,c,d,e,f,g"}, "up to 6 columns"),
    ],
)
def test_what_cannot_be_saved_is_explained(viewer: Client, given: dict[str, str], said: str) -> None:
    assert said in save(viewer, status=422, **given)
    assert not SavedView.objects.exists()


def test_a_name_is_text_and_used_once(viewer: Client) -> None:
    save(viewer, name="<b>x</b>\u202e")
    assert "<b>x" not in page_of(viewer, "/instances/")
    assert "already. Choose another name." in save(viewer, status=422, name="<b>x</b>\u202e")


def test_there_are_limits(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_OF_A_PERSON", 1)
    save(viewer)
    assert "There are 1 personal views already." in save(viewer, status=422, name="other")


def test_shared_views_stay_when_their_maker_is_deleted(signed_in: SignIn) -> None:
    maker = factories.person("operator", "max")
    client = Client()
    client.force_login(maker)
    save(client)
    save(client, name="Ours", **{"for": "shared"})
    maker.delete()
    (view,) = SavedView.objects.all()
    assert (view.name, view.owner, view.made_by) == ("Ours", None, None)


def test_a_search_that_is_not_understood_any_more_is_explained(viewer: Client) -> None:
    save(viewer)
    SavedView.objects.update(query="started:soon")
    page = page_of(viewer, f"/instances/?view={SavedView.objects.get().slug}")
    assert "not understood any more" in page


def test_numbers_follow_the_page(viewer: Client) -> None:
    factories.instance("running")
    factories.instance("queued")
    save(viewer)
    slug = SavedView.objects.get().slug
    answer = page_of(viewer, "/_f/views/counts/?tabs=1")
    assert f'<hx-partial hx-target="#view-n-{slug}" hx-swap="textContent">1</hx-partial>' in answer
    assert f'<hx-partial hx-target="#rail-n-{slug}" hx-swap="textContent">1</hx-partial>' in answer
    assert '<hx-partial hx-target="#view-n-all" hx-swap="textContent">2</hx-partial>' in answer
    assert f'id="rail-n-{slug}">1</span>' in page_of(viewer, "/")
