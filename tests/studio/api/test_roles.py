"""Route × role × scope: what docs/api.md says of each operation is what each holder of a token gets."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import connections, transaction
from django.test import AsyncClient

from engine.models import Audit, BulkJob, Event, Failure, Instance, PauseRow, ScheduleRow, Worker
from studio.access import tokens
from studio.access.token_rules import GIVABLE
from studio.access.verbs import Verb
from tests.docs.made.http import YES
from tests.docs.made.openapi import stream
from tests.docs.pages import PROJECT
from tests.studio import factories
from tests.studio.api import documented
from tests.studio.api.conftest import Program, Programs
from tests.studio.api.tour import BY_OPERATION, CALLS, Call

PAGE = (PROJECT / "docs" / "api.md").read_text()
ROLES = ("viewer", "operator", "approver", "admin")
READS = {call.operation for call in CALLS if call.method == "GET"}
# Written by hand: a verb that changes in the code is looked at here.
VERBS = dict.fromkeys(READS, "view") | dict.fromkeys({*BY_OPERATION} - READS, "operate")
VERBS["answer_request"] = "approve"
VERBS |= dict.fromkeys(("drain_worker", "resume_worker"), "administer")
VERBS[stream.NAME] = "view"
CHANGES_NOTHING = READS | {"preview_restart", "preview_bulk_job"}
ABOUT_ALL = {
    *("read_me", "list_workflows", "list_paused_workflows"),
    *("list_instances", "list_requests", "list_schedules", "list_workers"),
    "list_audit",
    "list_error_groups",
    *("list_bulk_jobs", "preview_bulk_job"),
}
# Of all workflows at once: the token must be for all of them.
OF_ALL = {"read_health", "drain_worker", "resume_worker"}
SHAPES = documented.operations()[stream.NAME]["responses"]["200"]["content"]["text/event-stream"][
    "x-reprise-events"
]
OURS = ("ship-order", "refund", "sales-report", "print-label")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a call: the status, and the rows that it added before it was undone."""

    status: int
    done: int = 0  # rows of the audit trail
    denied: int = 0
    has_changed: bool = False


def outcome(program: Program, call: Call) -> Outcome:
    before = state()
    with transaction.atomic():
        status = program.send(call.method, call.path, call.body).status_code
        after = state()
        transaction.set_rollback(True)
    return Outcome(status, after[0] - before[0], after[1] - before[1], after[2:] != before[2:])


def state() -> tuple[Any, ...]:
    outcomes = [*Audit.objects.values_list("outcome", flat=True)]
    return (
        outcomes.count("done"),
        outcomes.count("denied"),
        [*Instance.objects.order_by("key").values_list("key", "status", "signals", "generation", "rollback")],
        [*Event.objects.order_by("key").values_list("key", "state")],
        [*ScheduleRow.objects.order_by("key").values_list("key", "paused_at")],
        [*Failure.objects.order_by("fingerprint").values_list("fingerprint", "decision")],
        [*Worker.objects.order_by("key").values_list("key", "drained_at")],
        [*PauseRow.objects.order_by("key").values_list("workflow", "released")],
        [*BulkJob.objects.order_by("key").values_list("id", "paused_at", "aborted_at", "failed")],
        Audit.objects.filter(verb__in=["note", "error-note"], outcome="done").count(),
    )


def table() -> Iterator[tuple[str, str, dict[str, bool]]]:
    """Yield operation, verb and who may, of each line of the page."""
    ids = {(method, path): one["operationId"] for path, method, one in documented.listed()}
    text = PAGE.partition("<!-- made: http-rights -->")[2].partition("<!-- end -->")[0]
    head, _, *lines = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]] for line in text.strip().splitlines()
    ]
    for method, path, verb, *marks in lines:
        holders = {name: mark == YES for name, mark in zip(head[3:], marks, strict=True)}
        yield ids[method.lower(), path], verb, holders


@pytest.fixture
def holders(program_of: Programs) -> dict[str, Program]:
    """A personal token with every verb for each role, and a team token for each verb."""
    people = {role: program_of(role, name=role) for role in ROLES}
    return people | {str(verb): program_of(None, verbs=[verb], name=f"team {verb}") for verb in GIVABLE}


def test_every_operation_is_in_the_table_with_the_verb_that_it_should_need() -> None:
    assert {operation: verb for operation, verb, _ in table()} == VERBS


def test_every_holder_may_do_what_the_table_says_and_no_more(
    shop: object, holders: dict[str, Program]
) -> None:
    wrong = {}
    for operation, _, marks in table():
        if operation == stream.NAME:
            continue  # below
        call = BY_OPERATION[operation]
        assert list(marks) == list(holders)
        for holder, may in marks.items():
            got = outcome(holders[holder], call)
            if not is_right(got, call, may=may):
                wrong[operation, holder] = got
    assert wrong == {}


def is_right(got: Outcome, call: Call, *, may: bool) -> bool:
    """Tell whether a holder who may has done it, and one who may not has left one denied row and nothing else."""
    changes = call.operation not in CHANGES_NOTHING
    if not may:
        return got == Outcome(403, denied=int(changes))
    return (got.status, got.denied, got.done > 0, got.has_changed) == (call.status, 0, changes, changes)


def test_a_token_for_another_workflow_finds_nothing(shop: object, program_of: Programs) -> None:
    elsewhere = program_of("admin", workflows=["elsewhere-*"])
    for call in CALLS:
        if call.operation in OF_ALL:
            assert outcome(elsewhere, call) == Outcome(403)
            continue
        if call.operation not in ABOUT_ALL:
            assert outcome(elsewhere, call) == Outcome(404), call.operation
            continue
        answer = elsewhere.send(call.method, call.path, call.body)
        assert answer.status_code == 200, call.operation
        assert [name for name in OURS if name in answer.content.decode()] == [], call.operation


def test_a_scope_without_a_verb_takes_it_from_its_owner(shop: object, program_of: Programs) -> None:
    narrow = program_of("admin", verbs=[Verb.VIEW])
    for call in CALLS:
        got = outcome(narrow, call)
        assert got.status == (call.status if VERBS[call.operation] == "view" else 403), call.operation
        assert (got.done, got.has_changed) == (0, False), call.operation


def test_nobody_else_gets_anything_but_401(shop: object, signed_in: Any) -> None:
    """The same answer whether something exists or not, and a session opens nothing."""
    client, before = signed_in("admin"), state()
    wrong = ("Bearer", "Bearer rpr_unknown", f"Bearer rpr_abcdefgh_{'x' * 43}", "Basic YTpi", "Bearer a b")
    for given in ({}, *({"Authorization": one} for one in wrong)):
        bodies = set()
        for call in CALLS:
            for path in (call.path, call.path.replace("order-10", "nothing-10")):
                answer = client.generic(
                    call.method, f"/api/v1{path}", b"{}", "application/json", headers=given
                )
                assert (answer.status_code, "WWW-Authenticate" in answer) == (401, True), call
                bodies.add(answer.content)
        assert (len(bodies), state()) == (1, before)


@pytest.fixture
def asked(shop: object) -> tuple[Call, Group]:
    """A request that names a group, with a call that answers it."""
    group = Group.objects.create(name="finance")
    one = factories.instance("waiting", workflow="refund", id="refund-8", waiting_for="event")
    made = factories.request(one, assignees=["group:finance"])
    body = {"answer": {"refund": True, "amount": 10}}
    path = f"/workflows/refund/instances/refund-8/requests/{made.seq}/answer"
    return Call("answer_request", "POST", path, body), group


def test_only_those_who_are_named_answer_a_request(
    asked: tuple[Call, Group], holders: dict[str, Program]
) -> None:
    call, group = asked
    assert {name: outcome(one, call) for name, one in holders.items()} == dict.fromkeys(
        holders, Outcome(403, denied=1)
    )
    member = factories.person("viewer", "mia")
    member.groups.add(group)
    for verbs, status in ((GIVABLE, 200), ((Verb.VIEW, Verb.OPERATE), 403)):
        token = tokens.issue(f"of mia {status}", by=member, owner=member, verbs=verbs)
        assert outcome(Program(token.text), call).status == status, verbs


@pytest.mark.django_db(transaction=True)
def test_every_holder_who_may_view_follows_an_instance(
    holders: dict[str, Program], program_of: Programs
) -> None:
    instance = factories.instance("complete")
    address = f"/api/v1/workflows/{instance.workflow}/instances/{instance.id}/subscribe"
    tokens_of = {name: one.token for name, one in holders.items()}
    tokens_of |= {
        "elsewhere": program_of("admin", workflows=["elsewhere"], name="elsewhere").token,
        "nobody": "",
    }

    async def story() -> dict[str, tuple[int, list[str]]]:
        found = {}
        for name, token in tokens_of.items():
            answer = await AsyncClient().get(address, headers={"Authorization": f"Bearer {token}"})
            text = "".join([chunk.decode() async for chunk in answer]) if answer.streaming else ""
            found[name] = (answer.status_code, re.findall(r"^event: (\w+)$", text, re.MULTILINE))
            for kind, data in re.findall(r"^event: (\w+)\ndata: (.+)$", text, re.MULTILINE):
                assert documented.invalid(SHAPES[kind], json.loads(data)) == []
        await sync_to_async(connections.close_all)()
        return found

    [marks] = [marks for operation, _, marks in table() if operation == stream.NAME]
    may = {name: (200, ["instance", "end"]) for name, is_allowed in marks.items() if is_allowed}
    assert asyncio.run(story()) == may | {"elsewhere": (404, []), "nobody": (401, [])}
