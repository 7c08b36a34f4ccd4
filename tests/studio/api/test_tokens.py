"""The door of the API: which tokens open it, and that what a token may not see does not exist for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone
from django.views.debug import ExceptionReporter

from engine.models import Audit, Event, Instance, OpenRequest
from studio.access import tokens
from studio.access.permissions import Verb
from studio.api.auth import authenticate
from studio.models import Token
from tests.studio import factories
from tests.studio.api.conftest import PREFIX, Program, Programs
from tests.studio.api.routes import address, body, operations

pytestmark = pytest.mark.django_db

GOOD = {"answer": {"refund": True, "amount": 3}}
OF_AN_INSTANCE = sorted(name for name, one in operations().items() if "<id:id>" in one.route)
OF_A_WORKFLOW = sorted(name for name, one in operations().items() if "<workflow:name>" in one.route)


def problem(answer: HttpResponse) -> tuple[int, str, str]:
    said = json.loads(answer.content)
    return answer.status_code, said["code"], said["detail"]


def send(program: Program, name: str, instance: Instance) -> HttpResponse:
    one = operations()[name]
    return program.send(one.method, address(one, instance), body(one, instance))


def disable(owner: User) -> None:
    User.objects.filter(pk=owner.pk).update(is_active=False)


def change_password(owner: User) -> None:
    owner.set_password("another long password")
    owner.save()


def expire(owner: User) -> None:
    Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


def revoke(owner: User) -> None:
    tokens.revoke(Token.objects.get(), by=owner)


class TestEnds:
    @pytest.mark.parametrize("end", [disable, change_password, expire, revoke])
    def test_the_next_request_is_refused_and_does_nothing(self, end: Callable[[User], None]) -> None:
        owner = factories.person("operator")
        program = Program(tokens.issue("ci", by=owner, owner=owner, verbs=[Verb.OPERATE]).text)
        instance = factories.instance("waiting")
        address = f"{instance.get_absolute_url()}pause"
        assert program.get(instance.get_absolute_url().rstrip("/")).status_code == 200
        end(owner)
        for answer in (program.get(instance.get_absolute_url().rstrip("/")), program.post(address)):
            assert answer.status_code == 401
            assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
        assert instance.refresh().status == "waiting"

    def test_a_role_that_the_owner_loses_is_missing_at_the_next_request(self) -> None:
        owner = factories.person("operator")
        program = Program(tokens.issue("ci", by=owner, owner=owner, verbs=[Verb.OPERATE]).text)
        instance = factories.instance("waiting")
        owner.groups.set([Group.objects.get(name="reprise-viewer")])
        assert program.post(f"{instance.get_absolute_url()}pause").status_code == 403
        assert instance.refresh().status == "waiting"
        owner.groups.clear()
        assert program.get("/me").status_code == 403

    def test_its_use_is_noted(self, program: Program) -> None:
        program.get("/me")
        used = Token.objects.get().last_used_at
        assert used is not None
        assert timezone.now() - used < timedelta(minutes=1)


class TestOtherWaysIn:
    @pytest.mark.parametrize("name", sorted(operations()))
    def test_without_a_token_what_exists_looks_like_what_does_not(self, name: str) -> None:
        there = factories.instance("waiting", id="o-1")
        nowhere = Instance(workflow="nothing", id="o-2")
        found = []
        for instance in (there, nowhere):
            one = operations()[name]
            given = json.dumps(body(one, instance) or {})
            answer = Client().generic(one.method, PREFIX + address(one, instance), given, "application/json")
            assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="reprise"')
            found.append(answer.content)
        assert found[0] == found[1]

    @pytest.mark.parametrize("method", ["get", "post"])
    def test_a_session_opens_nothing(self, signed_in: Callable[..., Client], method: str) -> None:
        client = signed_in("root")
        where = "/me" if method == "get" else f"{factories.instance('waiting').get_absolute_url()}pause"
        assert getattr(client, method)(PREFIX + where).status_code == 401
        assert not Audit.objects.filter(outcome="done").exclude(verb=tokens.ISSUE).exists()

    @pytest.mark.parametrize("name", ["token", "access_token", "api_key", "Authorization"])
    def test_a_token_in_the_address_opens_nothing(self, program: Program, name: str) -> None:
        assert Client().get(f"{PREFIX}/me?{name}={program.token}").status_code == 401
        assert Client().post(f"{PREFIX}/me", {name: program.token}).status_code in (401, 405)

    def test_only_one_whole_token_in_the_right_scheme_opens_it(self, program: Program) -> None:
        text = program.token
        for given in (
            f"Token {text}",
            text,
            f"Bearer {text}x",
            f"Bearer {text[:-1]}",
            f"Bearer {text},Bearer {text}",
        ):
            answer = Client().get(f"{PREFIX}/me", headers={"Authorization": given})
            assert answer.status_code == 401, given.replace(text, "…")
        assert Client().get(f"{PREFIX}/me", headers={"Authorization": f"bearer  {text}"}).status_code == 200

    @pytest.mark.parametrize("part", ["studio.access.token_row.find", "studio.api.rates.spend"])
    def test_an_error_report_does_not_have_it(
        self, program: Program, monkeypatch: pytest.MonkeyPatch, rf: RequestFactory, part: str
    ) -> None:
        monkeypatch.setattr(part, lambda key: 1 / 0)
        given = f"Bearer {program.token}"
        request = rf.get(f"{PREFIX}/me", headers={"Authorization": given})
        request.scope = {"headers": [(b"authorization", given.encode())]}  # type: ignore[attr-defined]
        with pytest.raises(ZeroDivisionError) as raised:
            authenticate(request)
        report = ExceptionReporter(request, raised.type, raised.value, raised.tb)
        # The frames of this test know the token.
        frames = _below(report.get_traceback_frames(), "authenticate")
        monkeypatch.setattr(report, "get_traceback_frames", lambda: frames)
        for text in (report.get_traceback_html(), report.get_traceback_text()):
            assert "ZeroDivisionError" in text
            # Long values are printed in several lines.
            assert [at for at in range(13, 48) if program.token[at : at + 8] in text] == []

    def test_nothing_that_it_says_has_the_token(self, program: Program, caplog: Any) -> None:
        caplog.set_level("DEBUG")
        wrong = Program(program.token[:-1] + ("a" if program.token[-1] != "a" else "b"))
        said = [answer.content.decode() for answer in (wrong.get("/me"), program.get("/nowhere"))]
        assert [one for one in [*said, caplog.text] if program.token[13:-1] in one] == []


def _below(frames: list[dict[str, Any]], function: str) -> list[dict[str, Any]]:
    first = next(at for at, frame in enumerate(frames) if frame["function"] == function)
    return frames[first:]


class TestScope:
    @pytest.mark.parametrize("name", OF_AN_INSTANCE)
    def test_an_instance_of_another_workflow_does_not_exist(self, program_of: Programs, name: str) -> None:
        narrow = program_of("admin", workflows=["order*"])
        hidden = factories.instance("waiting", workflow="billing", id="b-1")
        factories.request(hidden)
        nowhere = Instance(workflow="billing", id="b-2")
        got = problem(send(narrow, name, hidden))
        assert got == problem(send(narrow, name, nowhere))
        assert got[0] == 404
        assert hidden.refresh().status == "waiting"
        assert not Event.objects.exists()
        assert not Audit.objects.exclude(verb=tokens.ISSUE).exists()

    @pytest.mark.parametrize("name", OF_A_WORKFLOW)
    def test_another_workflow_does_not_exist(self, program_of: Programs, name: str) -> None:
        narrow = program_of("admin", workflows=["order*"])
        factories.instance("waiting", workflow="process-order", id="b-1")
        hidden = Instance(workflow="process-order", id="b-1")
        nowhere = Instance(workflow="nothing", id="b-1")
        got = problem(send(narrow, name, hidden))
        assert got == problem(send(narrow, name, nowhere))
        assert got[0] == 404
        assert Instance.objects.count() == 1

    def test_no_event_goes_to_an_instance_that_a_body_names(self, program_of: Programs) -> None:
        factories.instance("waiting", workflow="billing", id="b-1")
        narrow = program_of("admin", workflows=["order*"])
        answers = [
            problem(narrow.post("/events", {"workflow": "billing", "id": found, "type": "paid"}))
            for found in ("b-1", "b-2")
        ]
        assert answers[0] == answers[1]
        assert (answers[0][0], Event.objects.count()) == (404, 0)

    def test_a_verb_that_is_missing_is_refused_and_recorded(self, program_of: Programs) -> None:
        instance = factories.instance("waiting")
        reader = program_of("operator", verbs=[])
        assert reader.post(f"{instance.get_absolute_url()}terminate").status_code == 403
        assert instance.refresh().status == "waiting"
        entry = Audit.objects.exclude(verb=tokens.ISSUE).get()
        assert (entry.verb, entry.outcome) == ("terminate", "denied")
        assert entry.actor.endswith(" (token:ci)")


class TestVotes:
    @pytest.mark.parametrize("assignee", ["token:ada", "ada", "group:reprise-approver"])
    def test_a_team_token_does_not_vote_where_people_are_named(
        self, program_of: Programs, assignee: str
    ) -> None:
        instance = factories.instance("waiting")
        step = factories.request(instance, assignees=[assignee])
        team = program_of(None, name="ada")
        answer = team.post(f"{instance.get_absolute_url()}requests/{step.seq}/answer", GOOD)
        assert (answer.status_code, Event.objects.count(), OpenRequest.objects.count()) == (403, 0, 1)
        entry = Audit.objects.exclude(verb=tokens.ISSUE).get()
        assert (entry.verb, entry.outcome, entry.actor) == ("answer", "denied", "token:ada")

    def test_it_does_where_nobody_is_named(self, program_of: Programs) -> None:
        instance = factories.instance("waiting")
        step = factories.request(instance)
        answer = program_of(None, name="ada").post(
            f"{instance.get_absolute_url()}requests/{step.seq}/answer", GOOD
        )
        assert answer.status_code == 200, answer.content
        assert Event.objects.get().sent_by == "token:ada"
