"""The page of the API is for people who may view, and works without ninja as an app."""

from __future__ import annotations

from collections.abc import Callable

from django.apps import apps
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import reverse

from tests.studio import factories


def test_people_who_may_view_get_it_with_the_address_of_the_document(viewer: Client) -> None:
    page = viewer.get("/api/v1/docs")
    assert page.status_code == 200
    assert 'data-document="/api/v1/openapi.json"' in page.content.decode()
    assert "script-src 'self'; style-src 'self'" in page["Content-Security-Policy"]


def test_its_address_may_end_with_a_slash(viewer: Client) -> None:
    assert 'id="api-docs"' in viewer.get("/api/v1/docs/").content.decode()


def test_it_is_linked_from_every_page(viewer: Client) -> None:
    assert f'href="{reverse("studio:api-docs")}"' in viewer.get("/").content.decode()


def test_nobody_else_gets_it(client: Client, signed_in: Callable[..., Client], db: None) -> None:
    assert client.get("/api/v1/docs")["Location"] == "/sign-in/?next=/api/v1/docs"
    assert signed_in("nobody").get("/api/v1/docs").status_code == 403
    factories.person("viewer")
    assert client.get("/api/v1/docs", headers={"Authorization": "Bearer rpr_x"}).status_code == 302


def test_its_files_are_ours(db: None) -> None:
    assert not apps.is_installed("ninja")
    for name in ("swagger-ui-bundle.js", "swagger-ui.css"):
        assert finders.find(f"studio/vendor/{name}"), name
