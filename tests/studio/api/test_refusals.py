"""Who may use which operation, at every address and with every method."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from engine.models import BulkJob, Event, Instance, ScheduleRow
from studio.access.permissions import Verb
from tests.studio import factories
from tests.studio.api.conftest import PREFIX, Program, Programs, trail
from tests.studio.api.routes import address, body, operations

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("only_possible_rows")]

ALL = operations()
STEERING = [name for name, one in ALL.items() if one.action]
WRITING = [name for name, one in ALL.items() if one.method != "GET"]
ABOUT_ONE = [name for name, one in ALL.items() if "<workflow:name>" in one.route]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")


@pytest.fixture
def instance() -> Instance:
    """Return an instance that waits for an answer, of a workflow with a schedule."""
    found = factories.instance("waiting", workflow="process-order", id="order-1")
    factories.request(found)
    ScheduleRow.objects.create(
        workflow="process-order",
        name="mornings",
        expression="0 9 * * *",
        timezone="UTC",
        next_at=datetime.now(UTC) + timedelta(hours=3),
    )
    factories.worker(["process-order"], name="host-1:1")
    factories.failure("process-order")
    BulkJob.objects.create(id="nightly", action="pause", arguments={})
    return found


def send(program: Program, name: str, instance: Instance, **headers: str) -> HttpResponse:
    one = ALL[name]
    return program.send(one.method, address(one, instance), body(one, instance), **headers)


def problem(answer: HttpResponse) -> Any:
    assert answer["Content-Type"] == "application/problem+json"
    found = json.loads(answer.content)
    assert found["type"] == f"urn:reprise:problem:{found['code']}"
    assert found["status"] == answer.status_code
    return found


def unchanged(instance: Instance) -> bool:
    now = Instance.objects.get(key=instance.key)
    counts = (
        Instance.objects.count(),
        Event.objects.count(),
        ScheduleRow.objects.filter(paused_at=None).count(),
    )
    return (now.status, now.generation, *counts) == (instance.status, instance.generation, 1, 0, 1)


class TestStrangers:
    @pytest.mark.parametrize("name", ALL)
    def test_learn_nothing(self, instance: Instance, name: str) -> None:
        """E2: also not which addresses and instances there are."""
        elsewhere = Instance(workflow="nowhere", id="nothing")
        answers = [send(Program(token), name, one) for token in ("", "x") for one in (instance, elsewhere)]
        assert [answer.status_code for answer in answers] == [401] * 4
        assert answers[0].content == answers[1].content
        assert answers[2].content == answers[3].content
        assert answers[0]["WWW-Authenticate"] == 'Bearer realm="reprise"'
        assert answers[2]["WWW-Authenticate"] == 'Bearer realm="reprise", error="invalid_token"'
        assert problem(answers[0])["code"] == "not_authenticated"
        assert unchanged(instance)

    @pytest.mark.parametrize("method", METHODS)
    def test_learn_nothing_by_another_method(self, instance: Instance, method: str) -> None:
        paths = [address(one, instance) for one in ALL.values()]
        for path in {*paths, "", "/", "/nothing", "/workflows/", "//me", "/ME", "/me/"}:
            answer = Program("").send(method, path)
            assert (answer.status_code, answer.headers.get("Allow")) == (401, None), path
        assert unchanged(instance)

    def test_are_no_people_who_are_signed_in(self, client: Client, instance: Instance) -> None:
        """E28"""
        client.force_login(factories.person("admin"))
        for one in ALL.values():
            answer = client.generic(one.method, PREFIX + address(one, instance), b"{}", "application/json")
            assert answer.status_code == 401
        assert unchanged(instance)

    def test_cannot_put_the_token_into_the_address(self, program: Program) -> None:
        """E39"""
        for name in ("token", "access_token", "key"):
            assert Program("").get(f"/me?{name}={program.token}").status_code == 401
        assert (
            Client().get(f"{PREFIX}/me", headers={"Authorization": f"Basic {program.token}"}).status_code
            == 401
        )
        assert Client().get(f"{PREFIX}/me", headers={"X-Token": program.token}).status_code == 401


class TestViewers:
    @pytest.mark.parametrize("name", WRITING)
    @pytest.mark.parametrize("kind", ["viewer", "scope", "team"])
    def test_change_nothing(self, program_of: Programs, instance: Instance, name: str, kind: str) -> None:
        """E4, E41, E60: a viewer with a token for everything, and others whose token is for viewing."""
        program = {
            "viewer": lambda: program_of("viewer"),
            "scope": lambda: program_of("operator", verbs=[Verb.VIEW]),
            "team": lambda: program_of(None, verbs=[Verb.VIEW]),
        }[kind]()
        answer = send(program, name, instance)
        assert answer.status_code == 403
        assert problem(answer)["code"] in ("not_allowed", "not_asked")
        assert unchanged(instance)

    @pytest.mark.parametrize("name", [*STEERING, "POST events"])
    @pytest.mark.parametrize("key", [None, "k-1"])
    def test_leave_one_row_in_the_trail(
        self, program_of: Programs, instance: Instance, name: str, key: str | None
    ) -> None:
        headers = {} if key is None else {"Idempotency_Key": key}
        send(program_of("viewer"), name, instance, **headers)
        (entry,) = trail()
        assert (entry.verb, entry.outcome) == (ALL[name].action or "send_event", "denied")
        is_of_none = "/<worker:worker>/" in name or "bulk-jobs" in name
        about = "" if is_of_none else "process-order"
        assert (entry.workflow, entry.actor.endswith("(token:ci)")) == (about, True)

    @pytest.mark.parametrize("key", [None, "k-1"])
    def test_who_are_not_asked_leave_a_row_at_an_answer(
        self, program_of: Programs, instance: Instance, key: str | None
    ) -> None:
        headers = {} if key is None else {"Idempotency_Key": key}
        name = "POST workflows/<workflow:name>/instances/<id:id>/requests/<step:seq>/answer"
        assert problem(send(program_of("viewer"), name, instance, **headers))["code"] == "not_asked"
        (entry,) = trail()
        assert (entry.verb, entry.outcome, entry.data["seq"]) == ("answer", "denied", 1)

    def test_of_two_team_tokens_do_not_share_their_denied_rows(
        self, program_of: Programs, instance: Instance
    ) -> None:
        first, second = (program_of(None, verbs=[Verb.VIEW], name=name) for name in ("a", "b"))
        for _ in range(25):
            first.post(f"/workflows/process-order/instances/{instance.id}/pause")
        second.post(f"/workflows/process-order/instances/{instance.id}/pause")
        assert trail().order_by("key").last().actor == "token:b"  # type: ignore[union-attr]


class TestNarrowTokens:
    @pytest.mark.parametrize("name", ABOUT_ONE)
    def test_cannot_tell_what_they_must_not_see_from_what_is_not_there(
        self, program_of: Programs, instance: Instance, name: str
    ) -> None:
        """E9: every operation about one workflow, instance, step, request or schedule."""
        program = program_of("root", workflows=["order-*"])
        elsewhere = Instance(workflow="order-nothing", id="nothing")
        there, nowhere = send(program, name, instance), send(program, name, elsewhere)
        assert (there.status_code, nowhere.status_code) == (404, 404)
        assert there.content == nowhere.content
        assert problem(there)["code"] == "not_found"
        assert unchanged(instance)
        assert not trail().exists()

    def test_cannot_reach_others_through_the_body(self, program_of: Programs, instance: Instance) -> None:
        """E10"""
        program = program_of("root", workflows=["order-*"])
        foreign = program.post("/events", {"workflow": "process-order", "id": "order-1", "type": "paid"})
        nowhere = program.post("/events", {"workflow": "order-x", "id": "order-1", "type": "paid"})
        assert (foreign.status_code, foreign.content) == (404, nowhere.content)
        assert unchanged(instance)

    @pytest.mark.parametrize("role", ["nobody"])
    def test_of_people_without_a_role_open_nothing(
        self, program_of: Programs, instance: Instance, role: str
    ) -> None:
        program = program_of(role)
        assert {send(program, name, instance).status_code for name in ALL} == {403}
        assert not trail().exists()


class TestMethods:
    """E13"""

    @pytest.mark.parametrize("name", ALL)
    def test_others_are_refused(self, program_of: Programs, instance: Instance, name: str) -> None:
        program, path = program_of("root"), address(ALL[name], instance)
        taken = {one.method for one in ALL.values() if one.route == ALL[name].route}
        taken |= {"HEAD"} & ({"HEAD"} if "GET" in taken else set())
        for method in {*METHODS} - taken:
            answer = program.send(method, path)
            assert answer.status_code == 405, method
            assert {*answer["Allow"].split(", ")} == taken
            assert method == "HEAD" or problem(answer)["code"] == "method_not_allowed"
        assert unchanged(instance)

    def test_no_header_or_field_overrides_them(self, program: Program, instance: Instance) -> None:
        where = "/workflows/process-order/instances/order-1"
        for headers in ({"X_HTTP_Method_Override": "POST"}, {"X_Method": "POST"}):
            assert program.send("GET", f"{where}/pause", **headers).status_code == 405
        assert program.send("GET", f"{where}?_method=DELETE").status_code == 422
        assert program.post(f"{where}/pause", {"_method": "DELETE"}).status_code == 422
        assert unchanged(instance)

    def test_head_is_get_without_the_body(self, program: Program) -> None:
        head, get = program.send("HEAD", "/me"), program.get("/me")
        assert (head.status_code, head.content) == (200, b"")
        assert head["Content-Type"] == get["Content-Type"]


class TestAddresses:
    """E14"""

    @pytest.mark.parametrize(
        "path", ["", "/", "/nothing", "/me/", "//me", "/ME", "/workflows//instances", "/me%2f", "/%2e%2e/"]
    )
    def test_there_is_one_for_each_thing(self, program: Program, path: str) -> None:
        answer = program.get(path)
        assert (answer.status_code, problem(answer)["code"]) == (404, "not_found")

    def test_a_long_one_is_refused(self, program: Program) -> None:
        answer = program.get("/workflows/" + "a" * 10_000)
        assert (answer.status_code, problem(answer)["code"]) == (414, "address_too_long")

    @pytest.mark.parametrize("path", ["/instances/a%00b", "/workflows/a%00b", "/workflows/%ff/instances/x"])
    def test_names_that_nothing_has_are_not_found(self, program: Program, path: str) -> None:
        """F20"""
        assert program.get(path).status_code == 404

    def test_unknown_parameters_are_refused(self, program: Program) -> None:
        """A filter with a wrong name would show everything."""
        answer = program.get("/instances?stauts=errored&limit=3")
        assert answer.status_code == 422
        assert problem(answer)["errors"][0]["path"] == "stauts"
        assert "status, tag" in problem(answer)["detail"]
        assert program.get("/me?x=1").status_code == 422

    def test_a_parameter_that_comes_twice_is_refused_unless_it_is_a_list(self, program: Program) -> None:
        """The last one would count, and a client that sends two filters would not notice."""
        for query in ("workflow=a&workflow=b", "limit=1&limit=1", "cursor=1&cursor=2&limit=1"):
            answer = program.get(f"/instances?{query}")
            name = query.split("=", maxsplit=1)[0]
            assert answer.status_code == 422
            (wrong,) = problem(answer)["errors"]
            assert (wrong["path"], wrong["code"]) == (name, "repeated_parameter")
        assert program.get("/instances?status=open&status=errored").status_code == 200


def test_every_answer_is_nothing_that_a_browser_shows(program: Program, instance: Instance) -> None:
    """E30, E33, E54, E64"""
    answers = [
        program.get("/me"),
        program.get("/nothing"),
        Program("").get("/me"),
        program.send("PUT", "/me"),
    ]
    for answer in answers:
        assert answer["Cache-Control"] == "no-store"
        assert answer["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'; sandbox"
        assert (answer["X-Frame-Options"], answer["X-Content-Type-Options"]) == ("DENY", "nosniff")
        assert answer["Content-Disposition"] == "attachment"
        assert answer["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in answer
        assert "Set-Cookie" not in answer
