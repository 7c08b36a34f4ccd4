"""The page of tokens: a new one is shown once, and nobody sees or ends what is not theirs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from engine.models import Audit
from studio.access import tokens
from studio.access.permissions import Verb, rights
from studio.models import Token
from tests.studio import factories
from tests.studio.display.test_escaping import EVIL, assert_is_text

pytestmark = pytest.mark.django_db

SignIn = Callable[..., Client]
TEXT = re.compile(r"rpr_[a-z0-9]{8}_[A-Za-z0-9_-]{43}")
GOOD: dict[str, Any] = {
    "name": "ci",
    "verbs": ["operate"],
    "workflows": "order-*\nrefund, refund",
    "lasts": "30",
}


def page_of(client: Client, where: str = "/tokens/", status: int = 200) -> str:
    answer = client.get(where)
    assert answer.status_code == status
    return answer.content.decode()


def create(client: Client, where: str = "/tokens/", status: int = 201, **given: Any) -> str:
    answer = client.post(where, GOOD | given)
    assert answer.status_code == status, answer.content.decode()
    return answer.content.decode()


def text_in(page: str) -> str:
    (text,) = set(TEXT.findall(page))
    return str(text)


def line_of(page: str, row: Token) -> str:
    return page.split(f'id="t-{row.pk}"')[1].split("</tr>")[0]


def made(owner: User, name: str = "ci", **given: Any) -> Token:
    return tokens.issue(name, by=owner, owner=owner, **given).row


class TestNewToken:
    def test_it_works_and_has_what_was_chosen(self, operator: Client) -> None:
        found = tokens.find(text_in(create(operator)))
        assert found is not None
        assert rights(found) == {Verb.VIEW, Verb.OPERATE}
        assert found.scope.workflows == ("order-*", "refund")
        (row,) = Token.objects.all()
        assert (row.name, row.created_by, row.owner.get_username()) == ("ci", "oli", "oli")
        assert row.expires_at is not None
        left = row.expires_at - timezone.now()
        assert timedelta(days=29, hours=23) < left <= timedelta(days=30)

    def test_it_is_shown_once_and_kept_nowhere(self, operator: Client) -> None:
        answer = operator.post("/tokens/", GOOD)
        text = text_in(answer.content.decode())
        assert answer.headers["Cache-Control"] == "no-store, private"
        assert [name for name, value in answer.items() if text in value] == []
        assert [one.key for one in answer.cookies.values() if text in one.value] == []
        assert [*operator.session.items()] == [
            (name, value) for name, value in operator.session.items() if text not in str(value)
        ]
        page = page_of(operator)
        assert "rpr_" + text[4:12] in page
        assert TEXT.findall(page) == []
        assert TEXT.findall(page_of(operator, "/audit/")) == []

    def test_a_reload_sends_the_form_again_and_shows_nothing(self, operator: Client) -> None:
        create(operator)
        page = create(operator, status=422)
        assert "There is a token named" in page
        assert TEXT.findall(page) == []
        assert Token.objects.count() == 1

    def test_it_can_be_copied_with_and_without_a_script(self, operator: Client) -> None:
        page = create(operator)
        text = text_in(page)
        assert f"<code>{text}</code>" in page
        assert f'data-copy="{text}"' in page
        assert "it is not shown again" in page

    @pytest.mark.parametrize(
        ("given", "until"),
        [
            ({"lasts": "never"}, None),
            ({"lasts": "date", "until": "2126-03-01"}, datetime(2126, 3, 2, tzinfo=UTC)),
        ],
    )
    def test_it_ends_as_chosen(self, operator: Client, given: dict[str, str], until: datetime | None) -> None:
        create(operator, **given)
        assert Token.objects.get().expires_at == until

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"name": " "}, "A name has 1 to 64 printable characters."),
            ({"workflows": ""}, "Name 1 to 20 workflows or patterns"),
            ({"workflows": "a b[c]"}, "&quot;b[c]&quot; is not the name of a workflow"),
            ({"lasts": "date", "until": "2020-01-01"}, "Choose an expiry in the future."),
            ({"lasts": "date", "until": ""}, "Choose the last day, or another expiry."),
            ({"lasts": "date", "until": "9999-12-31"}, "Choose the last day, or another expiry."),
            ({"lasts": "date", "until": "9998-12-31"}, "Choose an expiry before the year 9999."),
            ({"lasts": "x"}, "Choose the last day, or another expiry."),
            ({"verbs": ["administer"]}, "No token may administer."),
        ],
    )
    def test_what_is_wrong_is_said_at_its_field_and_nothing_is_made(
        self, operator: Client, given: dict[str, Any], said: str
    ) -> None:
        page = create(operator, status=422, **given)
        assert f'<p class="problem">{said}' in page
        assert "Not created: fix 1 field." in page
        assert not Token.objects.exists()
        assert not Audit.objects.exists()

    def test_all_that_is_wrong_is_said_at_once_and_what_was_typed_stays(self, operator: Client) -> None:
        page = create(operator, status=422, name="x" * 65, workflows="ü", lasts="date", until="2020-01-01")
        assert "Not created: fix 3 fields." in page
        for kept in (f'value="{"x" * 65}"', ">ü</textarea>", 'value="2020-01-01"'):
            assert kept in page

    def test_nobody_gives_what_they_may_not_do(self, viewer: Client) -> None:
        box = page_of(viewer).split('value="operate"')[1].split(">")[0]
        assert "disabled" in box
        assert "This requires the operator role, which you do not have." in create(viewer, status=422)
        found = tokens.find(text_in(create(viewer, verbs=["approve"])))
        assert found is not None
        assert found.scope.verbs == {Verb.VIEW, Verb.APPROVE}

    def test_hidden_fields_make_no_token_for_somebody_else(self, operator: Client) -> None:
        other = factories.person("admin")
        create(operator, owner=other.pk, owner_id=other.pk, is_team="1", created_by="x")
        row = Token.objects.get()
        assert (row.owner.get_username(), row.created_by) == ("oli", "oli")

    def test_the_first_page_says_how_to_use_one(self, viewer: Client) -> None:
        page = page_of(viewer)
        assert "No tokens yet" in page
        assert "http://testserver/api/v1/me" in page

    @pytest.mark.parametrize("evil", EVIL, ids=[evil[:16] for evil in EVIL])
    def test_names_are_text(self, operator: Client, evil: str) -> None:
        answer = operator.post("/tokens/", GOOD | {"name": evil[:64]})
        page = answer.content.decode()
        if answer.status_code == 201:
            assert_is_text(page, evil[:64])
            assert_is_text(page_of(operator, "/audit/"), evil[:64])
        else:
            assert answer.status_code == 422


class TestPreview:
    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            ("*", "All 3 workflows, and those that are added later."),
            ("order-*", "2 of 3 workflows: order-eu , order-us"),
            ("order-??, refund", "3 of 3 workflows: order-eu , order-us , refund"),
            ("nothing", "No workflow matches now."),
            ("", "No workflow matches now."),
            ("[", "No workflow matches now."),
        ],
    )
    def test_it_names_the_workflows_of_today(
        self, viewer: Client, monkeypatch: pytest.MonkeyPatch, typed: str, said: str
    ) -> None:
        names = ["order-eu", "order-us", "refund"]
        monkeypatch.setattr("studio.tokens.views.workflow_names", lambda: names)
        answer = viewer.get("/_f/tokens/matches/", {"workflows": typed})
        words = " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())
        assert said in words
        whole = viewer.post("/tokens/", GOOD | {"workflows": typed, "preview": "1"})
        assert (whole.status_code, Token.objects.count()) == (200, 0)
        assert answer.content.decode().strip() in whole.content.decode()

    def test_it_names_a_dozen(self, viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("studio.tokens.views.workflow_names", lambda: [f"w{n}" for n in range(40)])
        page = viewer.get("/_f/tokens/matches/", {"workflows": "w*"}).content.decode()
        assert page.count("<code>") == 12
        assert "and 28 more" in page


class TestLists:
    def test_people_see_their_own_only(self, operator: Client) -> None:
        mine = made(User.objects.get(username="oli"))
        other = made(factories.person("admin"), "theirs")
        team = tokens.issue("team", by=factories.person("admin")).row
        page = page_of(operator)
        assert f'id="t-{mine.pk}"' in page
        assert f'id="t-{other.pk}"' not in page
        assert f'id="t-{team.pk}"' not in page
        assert "Everyone's" not in page
        assert "tokens/people/" not in page

    def test_admins_see_everybodys(self, signed_in: SignIn) -> None:
        admin = signed_in("admin", "ada")
        row = made(factories.person("viewer", "vic"), "laptop")
        team = tokens.issue("deploy", by=User.objects.get(username="ada")).row
        assert "of vic" in line_of(page_of(admin, "/tokens/people/"), row)
        assert "by ada" in line_of(page_of(admin, "/tokens/team/"), team)
        assert f'id="t-{row.pk}"' not in page_of(admin)

    def test_a_found_token_is_looked_up_by_its_prefix(self, signed_in: SignIn) -> None:
        admin = signed_in("admin")
        row = made(factories.person("viewer", "vic"), "laptop")
        made(factories.person("viewer", "zoe"), "other")
        for wanted in (
            f"rpr_{row.prefix}",
            row.prefix,
            "lap",
            "VIC",
            f"rpr_{row.prefix}_secret-that-was-pasted",
        ):
            page = page_of(admin, f"/tokens/people/?q={wanted}")
            assert (page.count('id="t-'), f'id="t-{row.pk}"' in page) == (1, True), wanted
        assert "secret-that-was-pasted" not in page
        assert "No token begins with" in page_of(admin, "/tokens/people/?q=nothing")
        assert page_of(admin, "/tokens/people/?q=%00%27").count('id="t-') == 0

    def test_each_row_says_what_it_may_and_whether_it_works(self, operator: Client) -> None:
        oli = User.objects.get(username="oli")
        until = timezone.now() + timedelta(days=3)
        narrow = made(oli, "narrow", verbs=[Verb.APPROVE], workflows=["order-*"], expires_at=until)
        used, revoked, old = made(oli, "used"), made(oli, "revoked"), made(oli, "old", expires_at=until)
        Token.objects.filter(key=used.key).update(last_used_at=factories.ago(minutes=5))
        Token.objects.filter(key=old.key).update(expires_at=factories.ago(days=1))
        tokens.revoke(revoked, by=oli)
        page = page_of(operator)
        assert "view, approve" in line_of(page, narrow)
        assert "<code>order-*</code>" in line_of(page, narrow)
        assert f'datetime="{until.isoformat()}"' in line_of(page, narrow)
        assert line_of(page, used).count("<time") == 2  # created, last used
        assert "all workflows" in line_of(page, used)
        assert ">revoked<" in line_of(page, revoked)
        assert "popover" not in line_of(page, revoked)
        assert ">expired<" in line_of(page, old)
        order = [page.index(f'id="t-{row.pk}"') for row in (used, narrow, old, revoked)]
        assert order == sorted(order)

    def test_a_row_says_that_its_owner_has_ended_it(self, signed_in: SignIn) -> None:
        admin = signed_in("admin")
        gone, changed = factories.person("viewer"), factories.person("viewer")
        of_gone, of_changed = made(gone), made(changed)
        User.objects.filter(pk=gone.pk).update(is_active=False)
        changed.set_password("another long password")
        changed.save()
        page = page_of(admin, "/tokens/people/")
        assert "its owner is disabled" in line_of(page, of_gone)
        assert "its owner has another password" in line_of(page, of_changed)

    def test_what_ended_a_month_ago_is_left_out(self, operator: Client) -> None:
        oli = User.objects.get(username="oli")
        revoked, expired = made(oli, "revoked"), made(oli, "expired")
        Token.objects.filter(key=revoked.key).update(revoked_at=factories.ago(days=31))
        Token.objects.filter(key=expired.key).update(expires_at=factories.ago(days=31))
        assert "No tokens yet" in page_of(operator)


class TestTeam:
    def test_an_admin_makes_one(self, signed_in: SignIn) -> None:
        admin = signed_in("admin", "ada")
        found = tokens.find(text_in(create(admin, "/tokens/team/")))
        assert found is not None
        assert (found.owner, str(found)) == (None, "token:ci")

    @pytest.mark.parametrize("role", ["viewer", "approver", "operator"])
    def test_nobody_else_does_and_the_audit_trail_says_who_tried(self, signed_in: SignIn, role: str) -> None:
        client = signed_in(role, "vic")
        assert client.post("/tokens/team/", GOOD).status_code == 403
        assert not Token.objects.exists()
        (entry,) = Audit.objects.all()
        assert (entry.verb, entry.outcome, entry.actor, entry.workflow) == (
            "create_token",
            "denied",
            "vic",
            "",
        )
        assert "denied: create token" in page_of(client, "/audit/")

    def test_its_form_has_the_verbs_of_its_own(self, signed_in: SignIn) -> None:
        page = page_of(signed_in("admin"), "/tokens/team/")
        assert "Answer requests that name nobody." in page
        assert 'value="administer"' not in page


class TestRevoking:
    def test_it_ends_at_once_and_is_recorded(self, operator: Client) -> None:
        text = text_in(create(operator))
        row = Token.objects.get()
        assert f'action="/tokens/{row.pk}/revoke/"' in line_of(page_of(operator), row)
        answer = operator.post(f"/tokens/{row.pk}/revoke/")
        assert (answer.status_code, answer.headers["Location"]) == (302, "/tokens/")
        assert tokens.find(text) is None
        assert "Revoked ci. Programs that send it are refused." in page_of(operator)
        operator.post(f"/tokens/{row.pk}/revoke/")
        assert "ci was revoked already." in page_of(operator)
        assert [one.verb for one in Audit.objects.order_by("key")] == ["create_token", "revoke_token"]

    @pytest.mark.parametrize("role", ["viewer", "operator"])
    def test_what_is_somebody_elses_is_not_there(self, signed_in: SignIn, role: str) -> None:
        client = signed_in(role)
        rows = [made(factories.person("viewer")), tokens.issue("t", by=factories.person("admin")).row]
        for row in rows:
            assert client.post(f"/tokens/{row.pk}/revoke/").status_code == 404
        assert client.post("/tokens/999999999/revoke/").status_code == 404
        assert Token.objects.filter(revoked_at=None).count() == 2

    def test_an_admin_ends_everybodys(self, signed_in: SignIn) -> None:
        admin = signed_in("admin", "ada")
        of_vic = made(factories.person("viewer", "vic"))
        team = tokens.issue("t", by=User.objects.get(username="ada")).row
        assert admin.post(f"/tokens/{of_vic.pk}/revoke/").headers["Location"] == "/tokens/people/"
        assert admin.post(f"/tokens/{team.pk}/revoke/").headers["Location"] == "/tokens/team/"
        assert not Token.objects.filter(revoked_at=None).exists()

    def test_by_post_only(self, operator: Client) -> None:
        row = made(User.objects.get(username="oli"))
        assert operator.get(f"/tokens/{row.pk}/revoke/").status_code == 405
        assert Token.objects.filter(revoked_at=None).exists()

    def test_a_form_of_another_site_is_refused(self, signed_in: SignIn) -> None:
        client = signed_in("operator", "oli", enforce_csrf_checks=True)
        row = made(User.objects.get(username="oli"))
        assert client.post(f"/tokens/{row.pk}/revoke/").status_code == 403
        assert client.post("/tokens/", GOOD).status_code == 403
        assert Token.objects.filter(revoked_at=None).count() == 1


class TestTokensOpenNoPages:
    @pytest.mark.parametrize("where", ["/tokens/", "/tokens/team/", "/tokens/people/", "/", "/audit/"])
    def test_a_token_is_no_session(self, client: Client, where: str) -> None:
        text = tokens.issue("t", by=(root := factories.person("root")), owner=root).text
        for headers in ({"Authorization": f"Bearer {text}"}, {}):
            answer = client.get(f"{where}?token={text}&access_token={text}", headers=headers)
            assert answer.status_code == 302
        assert client.post(where, GOOD, headers={"Authorization": f"Bearer {text}"}).status_code == 302
        assert Token.objects.count() == 1


def test_the_audit_trail_tells_about_tokens(signed_in: SignIn) -> None:
    ada = signed_in("admin", "ada")
    create(ada)
    create(ada, "/tokens/team/", name="deploy")
    of_vic = made(factories.person("viewer", "vic"), "laptop")
    ada.post(f"/tokens/{of_vic.pk}/revoke/")
    words = " ".join(re.sub(r"<[^>]+>", " ", page_of(ada, "/audit/?verb=create_token")).split())
    row = Token.objects.get(name="deploy")
    assert "created the team token “deploy”" in words
    assert "created the token “ci” rpr_" in words
    assert f"rpr_{row.prefix}… view, operate on order-*, refund" in words
    assert "revoked the token" not in words.split("Denied only")[1]
    assert "revoked the token “laptop” of vic" in page_of(ada, "/audit/")
