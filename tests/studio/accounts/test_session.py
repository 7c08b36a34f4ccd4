"""Signing in and out."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client

from tests.studio import factories

pytestmark = pytest.mark.django_db
NAME = settings.SESSION_COOKIE_NAME


def sign_in(client: Client, **given: str) -> object:
    return client.post("/sign-in/", {"username": "zoe", "password": factories.PASSWORD, **given})


def test_the_session_id_changes_at_sign_in(client: Client) -> None:
    factories.person("viewer", "zoe")
    session = client.session
    session["seen"] = True
    session.save()
    client.cookies[NAME] = session.session_key
    before = session.session_key
    sign_in(client)
    assert client.cookies[NAME].value != before
    assert not Session.objects.filter(session_key=before).exists()


def test_the_cookies_are_for_the_server_alone(client: Client) -> None:
    """The names and flags under TLS are in tests/platform."""
    factories.person("viewer", "zoe")
    client.get("/sign-in/")
    sign_in(client)
    for name in (NAME, settings.CSRF_COOKIE_NAME):
        assert (client.cookies[name]["httponly"], client.cookies[name]["samesite"]) == (True, "Lax")


def test_signing_out_takes_post_only(operator: Client) -> None:
    assert operator.get("/sign-out/").status_code == 405
    assert operator.get("/instances/").status_code == 200


def test_the_way_out_says_what_it_does_and_who_is_in(operator: Client) -> None:
    page = " ".join(operator.get("/instances/").content.decode().split())
    assert '<span>Sign out</span><span class="who muted small">oli</span> </button>' in page


def test_signing_out_ends_the_session_and_clears_the_browser(operator: Client) -> None:
    key = operator.session.session_key
    answer = operator.post("/sign-out/")
    assert answer.headers["Clear-Site-Data"] == '"cache", "storage"'
    assert not Session.objects.filter(session_key=key).exists()
    assert operator.get("/instances/").status_code == 302


def test_an_unknown_name_and_a_wrong_password_read_the_same(client: Client) -> None:
    factories.person("viewer", "zoe")
    texts = set()
    for name in ("zoe", "nobody-of-that-name"):
        page = client.post("/sign-in/", {"username": name, "password": "wrong"}).content.decode()
        texts.add(page[page.index('role="alert"') : page.index("</div>", page.index('role="alert"'))])
        assert "Wrong user name or password." in page
    assert len(texts) == 1


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "https:evil.example",
        "\thttps://evil.example",
        "/%0d%0aSet-Cookie:x=1\r\nX: y",
    ],
)
def test_next_leads_nowhere_else(client: Client, target: str) -> None:
    factories.person("viewer", "zoe")
    answer = sign_in(client, next=target)
    location = answer.headers["Location"]  # type: ignore[attr-defined]
    assert location.startswith("/")
    assert "evil" not in location
    assert "\r" not in location
    assert "X" not in answer.headers  # type: ignore[attr-defined]


def test_next_leads_back(client: Client) -> None:
    factories.person("viewer", "zoe")
    answer = sign_in(client, next="/instances/?status=errored")
    assert answer.headers["Location"] == "/instances/?status=errored"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "target", ["/sign-in/", "/sign-in/?next=/sign-in/", "/sign-out/", "/theme/", "http://testserver/sign-in/"]
)
def test_next_leads_in_no_circle(operator: Client, client: Client, target: str) -> None:
    answer = operator.get("/sign-in/", {"next": target})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    factories.person("viewer", "zoe")
    assert sign_in(client, next=target).headers["Location"] == "/"  # type: ignore[attr-defined]


def test_the_theme_goes_only_where_it_came_from(client: Client) -> None:
    answer = client.post("/theme/", {"theme": "dark", "next": "https://evil.example/"})
    assert (answer.headers["Location"], answer.cookies["studio-theme"].value) == ("/", "dark")


def test_the_first_page_is_drawn_in_the_chosen_colours(operator: Client) -> None:
    operator.post("/theme/", {"theme": "dark"})
    assert b'data-theme="dark"' in operator.get("/").content
    operator.post("/theme/", {"theme": '"><script>'})
    assert b'data-theme="system"' in operator.get("/").content


class TestForgery:
    def test_a_post_without_a_token_is_refused(self, signed_in) -> None:  # type: ignore[no-untyped-def]
        client = signed_in("operator", enforce_csrf_checks=True)
        instance = factories.instance("waiting")
        for path in ("pause/", "terminate/", "events/"):
            answer = client.post(f"{instance.get_absolute_url()}{path}", {"reason": "x", "type": "x"})
            assert answer.status_code == 403
        assert instance.refresh().status == "waiting"

    def test_the_token_of_another_person_is_refused(self, signed_in) -> None:  # type: ignore[no-untyped-def]
        mine, theirs = (signed_in("operator", enforce_csrf_checks=True) for _ in range(2))
        theirs.get("/instances/")
        token = theirs.cookies[settings.CSRF_COOKIE_NAME].value
        mine.get("/instances/")
        answer = mine.post(
            f"{factories.instance('waiting').get_absolute_url()}pause/", headers={"X-CSRFToken": token}
        )
        assert answer.status_code == 403

    def test_the_token_of_the_page_is_taken_from_the_header(self, signed_in) -> None:  # type: ignore[no-untyped-def]
        client = signed_in("operator", enforce_csrf_checks=True)
        instance = factories.instance("waiting")
        page = client.get(instance.get_absolute_url()).content.decode()
        token = page.split('"X-CSRFTOKEN": "')[1].split('"')[0]
        headers = {"X-CSRFToken": token, "HX-Request": "true"}
        assert client.post(f"{instance.get_absolute_url()}pause/", headers=headers).status_code == 200
        assert instance.refresh().status == "paused"

    def test_an_old_page_is_told_to_reload(self, signed_in) -> None:  # type: ignore[no-untyped-def]
        client = signed_in("operator", enforce_csrf_checks=True)
        where = f"{factories.instance('waiting').get_absolute_url()}pause/"
        assert "This page is out of date" in client.post(where).content.decode()
        answer = client.post(where, headers={"HX-Request": "true"})
        assert (answer.status_code, answer.headers["HX-Refresh"]) == (403, "true")

    @pytest.mark.parametrize(
        ("came_from", "back"),
        [
            ("http://testserver/instances/?q=a", "/instances/?q=a"),
            ("http://evil.example/instances/", "/"),
            ("", "/"),
        ],
    )
    def test_from_there_a_link_leads_back_to_the_page(self, signed_in, came_from: str, back: str) -> None:  # type: ignore[no-untyped-def]
        """The address of an action takes no GET."""
        client = signed_in("operator", enforce_csrf_checks=True)
        where = f"{factories.instance('waiting').get_absolute_url()}pause/"
        page = client.post(where, headers={"Referer": came_from} if came_from else {}).content.decode()
        assert f'<a class="button primary" href="{back}">Reload</a>' in page

    def test_a_cross_site_post_is_refused(self, signed_in) -> None:  # type: ignore[no-untyped-def]
        client = signed_in("operator", enforce_csrf_checks=True)
        page = client.get("/instances/").content.decode()
        token = page.split('"X-CSRFTOKEN": "')[1].split('"')[0]
        answer = client.post("/theme/", headers={"X-CSRFToken": token, "Origin": "https://evil.example"})
        assert answer.status_code == 403


class TestSignedOutElsewhere:
    """The user's next action leads to sign-in, and from there back to the page."""

    @pytest.fixture
    def page(self, operator: Client) -> str:
        operator.logout()
        return factories.instance("waiting", id="order-1").get_absolute_url()

    def test_an_action_in_the_page(self, operator: Client, page: str) -> None:
        headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{page}?upto=7"}
        answer = operator.post(f"{page}pause/", headers=headers)
        assert (answer.status_code, answer.headers["HX-Redirect"]) == (
            401,
            f"/sign-in/?next={page}%3Fupto%3D7",
        )

    def test_a_plain_form(self, operator: Client, page: str) -> None:
        answer = operator.post(f"{page}pause/", headers={"Referer": f"http://testserver{page}"})
        assert (answer.status_code, answer.headers["Location"]) == (302, f"/sign-in/?next={page}")

    def test_the_slow_reconcile(self, operator: Client, page: str) -> None:
        headers = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{page}"}
        answer = operator.get("/_f/live/?topic=home", headers=headers)
        assert (answer.status_code, answer.headers["HX-Redirect"]) == (401, f"/sign-in/?next={page}")

    @pytest.mark.parametrize(
        "where", ["", "https://evil.example/x", "//evil.example", "javascript:alert(1)", "http://["]
    )
    @pytest.mark.parametrize("is_htmx", [True, False])
    def test_leads_nowhere_else(self, operator: Client, page: str, where: str, is_htmx: bool) -> None:
        headers = {"HX-Request": "true", "HX-Current-URL": where} if is_htmx else {"Referer": where}
        answer = operator.post(f"{page}pause/", headers=headers)
        assert answer.headers["HX-Redirect" if is_htmx else "Location"] == "/sign-in/"


class TestPassword:
    NEW = "another long and plain password"

    def change(self, client: Client, old: str = factories.PASSWORD, new: str = NEW, **given: Any) -> Any:
        fields = {"old_password": old, "new_password1": new, "new_password2": new, **given}
        return client.post("/password/", fields)

    def test_is_changed_by_whoever_knows_the_old_one(self, viewer: Client, client: Client) -> None:
        assert self.change(viewer).headers["Location"] == "/"
        assert "Your password was changed." in viewer.get("/").content.decode()
        fields = {"username": "vic", "password": self.NEW}
        assert client.post("/sign-in/", fields).status_code == 302

    def test_ends_all_other_sessions(self, viewer: Client) -> None:
        elsewhere = Client()
        elsewhere.force_login(User.objects.get(username="vic"))
        self.change(viewer)
        assert viewer.get("/instances/").status_code == 200
        assert elsewhere.get("/instances/").status_code == 302

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"old": "wrong"}, "Your old password was entered incorrectly."),
            ({"new": "short"}, "This password is too short."),
            ({"new_password2": "something else"}, "The two password fields"),
        ],
    )
    def test_is_kept_where_something_is_wrong(self, viewer: Client, given: dict[str, str], said: str) -> None:
        answer = self.change(viewer, **given)
        assert answer.status_code == 200
        assert "Your password was not changed." in answer.content.decode()
        assert said in answer.content.decode()
        assert User.objects.get(username="vic").check_password(factories.PASSWORD)

    def test_cannot_be_guessed_here_either(self, viewer: Client, client: Client) -> None:
        found = [self.change(viewer, old="wrong").status_code for _ in range(11)]
        assert found == [200] * 10 + [429]
        assert client.post("/sign-in/", {"username": "vic", "password": "wrong"}).status_code == 429

    def test_is_for_people_with_a_role(self, signed_in: Any, client: Client) -> None:
        assert self.change(signed_in("nobody")).status_code == 403
        assert self.change(client).headers["Location"] == "/sign-in/"

    def test_is_linked_from_every_page(self, viewer: Client) -> None:
        assert '<a class="nav" href="/password/">' in viewer.get("/").content.decode()

    def test_of_an_account_that_signs_in_elsewhere_is_not_ours_to_change(self, viewer: Client) -> None:
        user = User.objects.get(username="vic")
        user.set_unusable_password()
        user.save()
        viewer.force_login(user)
        assert "/password/" not in viewer.get("/").content.decode()
