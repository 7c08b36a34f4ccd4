"""A token opens no more than its scope, its owner and its validity allow at that moment."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission, User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.views.debug import ExceptionReporter

from engine.models import Audit, Event, Instance, OpenRequest
from engine.steer import requests
from engine.steer.audit import Cause
from engine.steer.requests import Asked
from engine.values.errors import RequestForbiddenError
from studio.access import denied_audit, token_row, tokens
from studio.access.permissions import RefusedError, Verb, allowed, may_answer, rights, visible, visible_rows
from studio.access.principals import Principal, Scope
from studio.access.token_rules import GIVABLE, InvalidTokenError
from studio.access.tokens import Issued
from studio.models import Token
from tests.studio import factories

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def personal(owner: User, name: str = "ci", verbs: Iterable[Verb] = GIVABLE, **given: Any) -> Issued:
    return tokens.issue(name, by=owner, owner=owner, verbs=tuple(verbs), **given)


def team(name: str = "deploy", verbs: Iterable[Verb] = GIVABLE, by: Any = None, **given: Any) -> Issued:
    return tokens.issue(name, by=by or factories.person("admin"), verbs=tuple(verbs), **given)


def holder(issued: Issued) -> Principal:
    found = tokens.find(issued.text)
    assert found is not None
    return found


def again(user: User) -> User:
    """Return the user as the next request reads it: Django keeps permissions with the object."""
    return User.objects.get(pk=user.pk)


class TestSecret:
    def test_the_table_has_a_digest_and_the_prefix_only(self) -> None:
        issued = personal(factories.person())
        secret = issued.text.removeprefix(f"rpr_{issued.row.prefix}_")
        assert re.fullmatch(r"rpr_[a-z0-9]{8}_[A-Za-z0-9_-]{43}", issued.text)
        with connection.cursor() as cursor:
            cursor.execute("SELECT string_agg(held::text, ' ') FROM studio_token held")
            (stored,) = cursor.fetchone()
        assert issued.row.prefix in stored
        assert secret not in stored

    def test_no_two_are_alike(self) -> None:
        owner = factories.person()
        assert len({personal(owner, str(n)).text[13:] for n in range(20)}) == 20

    def test_nothing_that_is_printed_or_recorded_has_the_text(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("DEBUG")
        issued = personal(factories.person())
        found = holder(issued)
        tokens.revoke(issued.row, by=again(issued.row.owner))
        rows = [(row.reason, row.data, str(row)) for row in Audit.objects.all()]
        said = [repr(issued), repr(issued.row), str(issued.row), repr(found), str(found), *map(repr, rows)]
        said += [caplog.text]
        secret = issued.text[13:]
        assert [text for text in said if secret in text] == []

    def test_an_error_report_does_not_show_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        issued = personal(factories.person())
        monkeypatch.setattr(token_row, "find", lambda prefix: 1 / 0)
        with pytest.raises(ZeroDivisionError) as raised:
            tokens.find(issued.text)
        report = ExceptionReporter(None, raised.type, raised.value, raised.tb)
        shown = [frame for frame in report.get_traceback_frames() if frame["function"] == "find"]
        assert shown
        assert issued.text[13:] not in repr([frame["vars"] for frame in shown])

    @pytest.mark.parametrize(
        "text",
        ["", "rpr_", "rpr_aaaaaaaa_", "x" * 10_000, "rpr_aaaaaaaa_\0" + "a" * 42, "rpr_aaaaaaaa_" + "é" * 43],
    )
    def test_what_is_no_token_asks_the_database_nothing(self, text: str) -> None:
        with CaptureQueriesContext(connection) as asked:
            assert tokens.find(text) is None
        assert len(asked) == 0

    def test_the_prefix_of_one_with_the_secret_of_another_is_unknown(self) -> None:
        owner = factories.person()
        one, other = personal(owner, "one"), personal(owner, "other")
        assert tokens.find(one.text[:13] + other.text[13:]) is None

    def test_it_takes_one_query_and_another_once_a_minute(self) -> None:
        issued = personal(factories.person())
        with CaptureQueriesContext(connection) as asked:
            holder(issued)
        assert len(asked) == 2
        issued.row.refresh_from_db()
        used = issued.row.last_used_at
        with CaptureQueriesContext(connection) as asked:
            holder(issued)
        assert len(asked) == 1
        Token.objects.update(last_used_at=used - tokens.USE_NOTED_EVERY)
        holder(issued)
        issued.row.refresh_from_db()
        assert issued.row.last_used_at >= used


@pytest.mark.django_db(transaction=True)
def test_noting_its_use_waits_for_no_other_request() -> None:
    issued = personal(factories.person())
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT key FROM studio_token FOR UPDATE")
            with transaction.atomic(), connection.cursor() as own:
                own.execute("SET LOCAL lock_timeout = '1s'")
                assert holder(issued)
            cursor.execute("ROLLBACK")
    finally:
        other.close()
    issued.row.refresh_from_db()
    assert issued.row.last_used_at is None
    assert holder(issued)
    issued.row.refresh_from_db()
    assert issued.row.last_used_at is not None


class TestEnd:
    """401 at once."""

    def test_of_an_expired_one(self) -> None:
        issued = personal(factories.person(), expires_at=timezone.now() + HOUR)
        assert tokens.find(issued.text) is not None
        Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        assert tokens.find(issued.text) is None

    def test_of_a_revoked_one(self) -> None:
        issued = personal(factories.person())
        assert tokens.revoke(issued.row, by=issued.row.owner)
        assert tokens.find(issued.text) is None
        assert not tokens.revoke(issued.row, by=issued.row.owner)

    def test_by_another_password(self) -> None:
        owner = factories.person()
        issued = personal(owner)
        owner.set_password("another long password")
        owner.save()
        assert tokens.find(issued.text) is None

    def test_by_a_hash_that_a_program_writes(self) -> None:
        """Also of the same password: nobody can tell. What Django itself hashes anew is in test_rehashing.py."""
        owner = factories.person()
        issued = personal(owner)
        User.objects.filter(pk=owner.pk).update(password=make_password(factories.PASSWORD))
        assert tokens.find(issued.text) is None

    def test_not_by_another_secret_key(self, settings: Any) -> None:
        issued = personal(factories.person())
        settings.SECRET_KEY = "another"
        assert tokens.find(issued.text) is not None

    def test_by_a_disabled_owner_until_enabled_again(self) -> None:
        owner = factories.person()
        issued = personal(owner)
        User.objects.filter(pk=owner.pk).update(is_active=False)
        assert tokens.find(issued.text) is None
        User.objects.filter(pk=owner.pk).update(is_active=True)
        assert tokens.find(issued.text) is not None

    def test_by_the_deletion_of_its_owner(self) -> None:
        owner = factories.person()
        issued = personal(owner)
        owner.delete()
        assert tokens.find(issued.text) is None

    def test_a_team_token_survives_the_admin_who_made_it(self) -> None:
        admin = factories.person("admin")
        issued = team(by=admin)
        admin.delete()
        assert rights(holder(issued)) == set(GIVABLE)


class TestScope:
    @pytest.mark.parametrize("role", ["viewer", "approver", "operator", "admin", "root", "nobody"])
    def test_a_personal_one_can_do_what_its_owner_can_and_no_more(self, role: str) -> None:
        owner = factories.person(role)
        assert rights(holder(personal(owner))) == rights(again(owner)) - {Verb.ADMINISTER}

    def test_backends_of_the_project_are_asked_too(self, settings: Any) -> None:
        settings.AUTHENTICATION_BACKENDS = ["tests.studio.access.test_access.Directory"]
        owner = factories.person("nobody", "from-the-directory")
        assert rights(holder(personal(owner))) == rights(owner) == {Verb.VIEW, Verb.OPERATE}

    def test_a_permission_of_the_owner_alone_counts(self) -> None:
        owner = factories.person("nobody")
        owner.user_permissions.set([_permission("view"), _permission("approve")])
        assert rights(holder(personal(owner))) == {Verb.VIEW, Verb.APPROVE}

    def test_a_role_taken_away_is_gone_at_the_next_request(self) -> None:
        owner = factories.person("operator")
        issued = personal(owner)
        owner.groups.clear()
        assert rights(holder(issued)) == frozenset()

    def test_verbs_narrow_it(self) -> None:
        owner = factories.person("operator")
        assert rights(holder(personal(owner, verbs=()))) == {Verb.VIEW}

    def test_a_team_token_has_verbs_of_its_own(self) -> None:
        assert rights(holder(team(verbs=[Verb.OPERATE]))) == {Verb.VIEW, Verb.OPERATE}

    @pytest.mark.parametrize("is_team", [True, False])
    def test_none_administers(self, is_team: bool) -> None:
        by = factories.person("root")
        with pytest.raises(InvalidTokenError, match="No token may administer"):
            tokens.issue("x", by=by, owner=None if is_team else by, verbs=list(Verb))
        assert not Token.objects.exists()

    def test_patterns_narrow_it(self) -> None:
        found = holder(team(workflows=["order-*", "refund"]))
        names = ["order-eu", "order", "refund", "refunds", "billing"]
        assert [name for name in names if allowed(found, Verb.OPERATE, name)] == ["order-eu", "refund"]
        assert visible(found, names) == ["order-eu", "refund"]
        assert allowed(found, Verb.OPERATE, None)  # lists, which are narrowed themselves

    @pytest.mark.parametrize(
        "patterns",
        [["*"], ["order-*"], ["?*"], ["*-eu", "refund"], ["ORDER-*"], ["o?der-eu"], ["o*r-*u"], ["orders"]],
    )
    def test_the_database_reads_them_as_python_does(self, patterns: list[str]) -> None:
        names = ["order-eu", "order_eu", "orders", "ORDER-EU", "refund", "xrefundx", ""]
        for name in names:
            Audit.objects.create(verb="start", workflow=name, instance_id="1")
        found = holder(team(workflows=patterns))
        rows = Audit.objects.filter(visible_rows(found)).exclude(verb=tokens.ISSUE)
        assert sorted(rows.values_list("workflow", flat=True)) == sorted(
            name for name in names if allowed(found, Verb.VIEW, name)
        )

    def test_rows_about_no_workflow_are_for_who_sees_all(self) -> None:
        narrow, wide = holder(team("narrow", workflows=["order-*"])), holder(team("wide"))
        assert not Audit.objects.filter(visible_rows(narrow)).exists()
        assert Audit.objects.filter(visible_rows(wide)).count() == 2

    def test_who_may_view_nothing_sees_no_rows(self) -> None:
        owner = factories.person("nobody")
        factories.instance()
        assert not Instance.objects.filter(visible_rows(holder(personal(owner)))).exists()
        assert not Instance.objects.filter(visible_rows(owner)).exists()

    def test_people_see_all_rows(self) -> None:
        row = factories.instance()
        assert [*Instance.objects.filter(visible_rows(factories.person("viewer")))] == [row]

    def test_signs_of_regular_expressions_are_letters(self) -> None:
        assert Scope(frozenset(), ("a.c", "a+(", "[a]")).regex == r"^(?:a\.c|a\+\(|\[a\])$"


class TestIssuing:
    def test_the_audit_trail_records_it(self) -> None:
        admin = factories.person("admin", "ada")
        until = datetime(2126, 1, 1, tzinfo=UTC)
        row = team("deploy", [Verb.OPERATE], admin, workflows=["order-*"], expires_at=until).row
        tokens.revoke(row, by=admin)
        entries = Audit.objects.order_by("key")
        assert [(one.verb, one.actor, one.workflow, one.outcome) for one in entries] == [
            ("create_token", "ada", "", "done"),
            ("revoke_token", "ada", "", "done"),
        ]
        assert [one.data for one in entries] == 2 * [
            {
                "token": row.prefix,
                "name": "deploy",
                "owner": None,
                "verbs": ["view", "operate"],
                "workflows": ["order-*"],
                "expires_at": "2126-01-01T00:00:00+00:00",
            }
        ]

    @pytest.mark.parametrize("role", ["nobody", "viewer", "approver", "operator"])
    def test_team_tokens_are_made_by_admins_only(self, role: str) -> None:
        with pytest.raises(RefusedError):
            team(by=factories.person(role))
        assert not Token.objects.exists()
        assert not Audit.objects.exists()

    def test_nobody_gives_a_team_token_what_they_may_not_do(self) -> None:
        admin = factories.person("nobody")
        for codename in ("view", "administer"):
            admin.user_permissions.add(_permission(codename))
        with pytest.raises(RefusedError):
            team(by=again(admin), verbs=[Verb.OPERATE])
        assert rights(holder(team(by=again(admin), verbs=[]))) == {Verb.VIEW}

    def test_nobody_makes_a_token_for_somebody_else(self) -> None:
        with pytest.raises(RefusedError):
            tokens.issue("x", by=factories.person("root"), owner=factories.person("viewer"))

    @pytest.mark.parametrize("is_team", [True, False])
    def test_no_token_makes_or_revokes_tokens(self, is_team: bool) -> None:
        root = factories.person("root")
        issued = team(by=root) if is_team else personal(root)
        found = holder(issued)
        with pytest.raises(RefusedError):
            tokens.issue("x", by=found)
        with pytest.raises(RefusedError):
            tokens.issue("x", by=found, owner=root)
        with pytest.raises(RefusedError):
            tokens.revoke(issued.row, by=found)
        assert Token.objects.filter(revoked_at=None).count() == 1

    def test_a_row_with_every_verb_makes_no_tokens_either(self) -> None:
        issued = team()
        Token.objects.update(verbs=[*Verb])
        with pytest.raises(RefusedError):
            tokens.issue("x", by=holder(issued))

    def test_only_its_owner_and_admins_revoke_one(self) -> None:
        owner, other = factories.person("viewer"), factories.person("operator")
        row = personal(owner).row
        with pytest.raises(RefusedError):
            tokens.revoke(row, by=other)
        assert tokens.revoke(row, by=factories.person("admin"))
        with pytest.raises(RefusedError):
            tokens.revoke(team().row, by=owner)

    @pytest.mark.parametrize("name", ["", "  ", "x" * 65, "a\nb", "a\0b", "a\u202eb", "\ud800"])
    def test_a_name_is_short_and_printable(self, name: str) -> None:
        with pytest.raises(InvalidTokenError) as refused:
            personal(factories.person(), name)
        assert refused.value.field == "name"

    @pytest.mark.parametrize(
        "patterns", [[], [""], ["a b"], ["[a-z]"], ["a" * 65], ["ä"], ["a\n"], ["a"] * 21]
    )
    def test_a_pattern_has_letters_and_two_signs(self, patterns: list[str]) -> None:
        with pytest.raises(InvalidTokenError) as refused:
            personal(factories.person(), workflows=patterns)
        assert refused.value.field == "workflows"

    @pytest.mark.parametrize(
        "until", [datetime(2020, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)]
    )
    def test_an_expiry_is_in_the_future_and_can_be_stored(self, until: datetime) -> None:
        with pytest.raises(InvalidTokenError) as refused:
            personal(factories.person(), expires_at=until)
        assert refused.value.field == "expires_at"

    def test_a_name_is_used_once_by_an_owner_until_it_is_revoked(self) -> None:
        owner = factories.person()
        row = personal(owner, "ci").row
        with pytest.raises(InvalidTokenError, match='There is a token named "ci" already'):
            personal(owner, " ci ")
        personal(factories.person(), "ci")
        team("ci")
        with pytest.raises(InvalidTokenError):
            team("ci")
        tokens.revoke(row, by=owner)
        personal(owner, "ci")

    def test_an_owner_has_a_hundred_at_most(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tokens, "MOST_OF_AN_OWNER", 2)
        owner = factories.person()
        personal(owner, "1")
        row = personal(owner, "2").row
        with pytest.raises(InvalidTokenError, match="There are 2 tokens already"):
            personal(owner, "3")
        tokens.revoke(row, by=owner)
        personal(owner, "3")


class TestVotes:
    """Where people are named, people decide."""

    def test_a_team_token_answers_only_what_names_nobody(self) -> None:
        found = holder(team("ada"))
        assert may_answer(Asked("?", None, ()), found, "orders")
        for assignees in (("ada",), ("token:ada",), ("group:reprise-approver",)):
            assert not may_answer(Asked("?", None, assignees), found, "orders")

    def test_the_engine_refuses_a_team_token_that_is_named_like_an_assignee(self) -> None:
        instance = factories.instance("waiting")
        factories.request(instance, assignees=["token:ada"])
        with pytest.raises(RequestForbiddenError):
            requests.answer(instance, "decide", {"refund": True, "amount": 5}, by=holder(team("ada")))
        assert not Event.objects.exists()
        assert not requests.put_to(requests.names_of(holder(team("bob"))), nobody=False).exists()
        assert OpenRequest.objects.count() == 1

    def test_a_personal_one_answers_for_its_owner_with_the_verb(self) -> None:
        owner = factories.person("viewer", "ada")
        named = Asked("?", None, ("ada",))
        assert may_answer(named, holder(personal(owner)), "orders")
        assert not may_answer(named, holder(personal(owner, "read", [Verb.OPERATE])), "orders")
        assert not may_answer(named, holder(personal(owner, "narrow", workflows=["refund"])), "orders")
        assert not may_answer(Asked("?", None, ()), holder(personal(owner, "open")), "orders")
        assert not may_answer(Asked("?", None, ("bob",)), holder(personal(owner, "bob")), "orders")

    def test_the_answer_names_the_owner_and_the_token(self) -> None:
        instance = factories.instance("waiting")
        factories.request(instance, assignees=["group:support"])
        owner = factories.person("viewer", "ada")
        owner.groups.add(Group.objects.create(name="support"))
        found = holder(personal(owner))
        event = requests.answer(instance, "decide", {"refund": True, "amount": 5}, by=found)
        assert event.sent_by == "ada (token:ci)"
        entry = Audit.objects.get(verb="answer")
        assert (entry.actor, entry.user_key) == ("ada (token:ci)", str(owner.pk))


class TestAudit:
    def test_it_says_which_token_acted_and_for_whom(self) -> None:
        owner = factories.person("operator", "ada")
        of_ada, of_team = holder(personal(owner)), holder(team("deploy"))
        assert Cause.of(of_ada) == Cause("ada (token:ci)", str(owner.pk))
        assert Cause.of(of_team) == Cause("token:deploy", "")

    def test_the_tries_of_one_team_token_hide_nobody_elses(self) -> None:
        instance = factories.instance("waiting")
        one, other = holder(team("one")), holder(team("other"))
        for found in [one] * (denied_audit.OF_A_PERSON + 5) + [other]:
            denied_audit.record_for_instance("pause", instance, found)
        entries = Audit.objects.filter(outcome="denied")
        assert entries.filter(actor="token:one").count() == denied_audit.OF_A_PERSON
        assert entries.filter(actor="token:other").count() == 1


def _permission(codename: str) -> Permission:
    return Permission.objects.get(codename=codename, content_type__app_label="studio")
