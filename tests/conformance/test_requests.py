"""Requests: people are asked, the first answer counts, and an answer that does not fit is refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import pytest
from django.contrib.auth.models import Group, User
from django.db import connections, transaction
from pydantic import BaseModel, Field

from engine import (
    Answer,
    Event,
    InstanceFinishedError,
    InvalidNameError,
    InvalidParamsError,
    InvalidValueError,
    LimitError,
    RequestAnsweredError,
    RequestClosedError,
    RequestForbiddenError,
    RequestNotFoundError,
    RequestTimeoutError,
    StepConfigError,
    WorkflowStep,
    workflow,
)
from engine.models import Audit
from engine.models import Event as Row
from engine.steer.requests import answer, open_requests, put_to
from tests import shifts
from tests.records import crash, statuses, step, steps
from tests.stories import run_to_end, running_shift, wait_for, wait_until
from tests.travel import age
from tests.violations import violations


class Refund(BaseModel):
    """What finance decides."""

    approved: bool
    amount: float = Field(ge=0, le=1240)
    method: Literal["card", "voucher"] = "card"


@pytest.fixture(autouse=True)
def _sound(_story: None) -> Iterator[None]:
    """However a request ends, no invariant is violated."""
    yield
    assert violations() == []


@pytest.fixture
def ask() -> Any:
    """A workflow that asks finance for a refund, within an hour, and returns what it got."""

    @workflow
    async def refund(step: WorkflowStep, params: dict[str, Any]) -> list[Any]:
        try:
            given = await step.request(
                "decide",
                Refund,
                message=f"Refund {params['amount']} € to {params['customer']}",
                assignees=params.get("assignees", ()),
                timeout="1h",
            )
        except RequestTimeoutError as late:
            return ["late", late.step, late.timeout, str(late)]
        await step.sleep("park", 0.01)
        return [
            given.value.approved,
            given.value.amount,
            given.value.method,
            given.answered_by,
            given.comment,
        ]

    return refund


ASKED = {"amount": 1240, "customer": "ACME"}
GOOD = {"approved": True, "amount": 1200}


def test_an_answer_resumes_it_typed_with_who_when_and_why(ask: Any) -> None:
    """KC-34"""
    instance = ask.start(ASKED)
    with running_shift():
        wait_for(instance, "waiting")
        assert instance.waiting_for == "event"
        asked = step(instance, "decide")
        assert (asked.kind, asked.status, asked.event_types) == (
            "request",
            "waiting",
            ["reprise:request:1:1"],
        )
        assert asked.options["message"] == "Refund 1240 € to ACME"
        assert asked.options["schema"]["required"] == ["approved", "amount"]
        given = answer(instance, "decide", GOOD, by="ada", comment="photo is clear")
        wait_for(instance)
    assert instance.output == [True, 1200.0, "card", "ada", "photo is clear"]
    asked = step(instance, "decide")
    assert asked.output == {
        "type": "reprise:request:1:1",
        "sent_by": "ada",
        "received_us": asked.output["received_us"],
        "payload": {"value": GOOD, "comment": "photo is clear"},
    }
    assert (given.state, given.sent_by) == ("buffered", "ada")
    (entry,) = Audit.objects.filter(instance_key=instance.key, verb="answer")
    assert (entry.actor, entry.reason, entry.data["request"]) == ("ada", "photo is clear", "decide")


def test_an_answer_is_the_same_on_every_replay() -> None:
    seen: list[Answer[bool]] = []

    @workflow
    async def story(step: WorkflowStep) -> bool:
        given = await step.request("ok?", bool, message="Go on?")
        seen.append(given)
        await step.sleep("park", 0.01)
        return given.value

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        sent = answer(instance, 1, False, by="ada")
        wait_for(instance)
    assert instance.output is False
    assert len(seen) >= 2
    assert set(seen) == {Answer(False, "ada", sent.received_at, "")}


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({"approved": True}, ["amount"]),
        ({"approved": "yes", "amount": 1}, ["approved"]),
        ({"approved": True, "amount": 1240.01}, ["amount"]),
        ({"approved": True, "amount": 1, "method": "cash"}, ["method"]),
        ([], [""]),
        (None, [""]),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_to_whoever_gives_it(ask: Any, value: Any, paths: Any) -> None:
    """KC-35: it still waits, and takes the next one"""
    instance = ask.start(ASKED)
    with running_shift():
        wait_for(instance, "waiting")
        with pytest.raises(InvalidParamsError) as caught:
            answer(instance, "decide", value, by="ada")
        assert [error["path"] for error in caught.value.errors] == paths
        assert (instance.refresh().status, Row.objects.count()) == ("waiting", 0)
        assert not Audit.objects.filter(verb="answer").exists()
        answer(instance, "decide", GOOD, by="ada")
        wait_for(instance)
    assert instance.output[:2] == [True, 1200.0]


def test_only_what_can_be_stored_is_an_answer() -> None:
    @workflow
    async def story(step: WorkflowStep) -> Any:
        return (await step.request("say", Any, message="Say anything.")).value

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        for bad in (float("nan"), "\0", object()):
            with pytest.raises(InvalidValueError):
                answer(instance, "say", bad, by="ada")
        with pytest.raises(LimitError):
            answer(instance, "say", 1, by="ada", comment="x" * 2001)
        with pytest.raises(InvalidNameError):
            answer(instance, "say", 1, by=None)
        answer(instance, "say", {"any": [1, None]}, by="ada")
        wait_for(instance)
    assert instance.output == {"any": [1, None]}


def test_an_unknown_request_is_an_error_that_names_the_ones_that_wait(ask: Any) -> None:
    """KC-37"""
    instance = ask.start(ASKED)
    with running_shift():
        wait_for(instance, "waiting")
        for nothing in ("decided", 2):
            with pytest.raises(RequestNotFoundError, match='Waiting for an answer: "decide"'):
                answer(instance, nothing, GOOD, by="ada")


@pytest.mark.parametrize(
    ("wrong", "option"),
    [
        ({"schema": {"type": "object"}}, "schema"),
        ({"schema": Callable[[], int]}, "schema"),
        ({"message": " "}, "message"),
        ({"message": "x" * 10_001}, "message"),
        ({"assignees": "ada"}, "assignees"),
        ({"assignees": ["group:"]}, "assignees"),
        ({"assignees": [7]}, "assignees"),
        ({"assignees": ["ada"] * 101}, "assignees"),
    ],
)
def test_a_wrong_request_is_refused_where_it_is_made(wrong: dict[str, Any], option: str) -> None:
    """KC-37"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        given = {"schema": bool, "message": "Go on?"} | wrong
        schema = given.pop("schema")
        try:
            await step.request("ask", schema, **given)
        except StepConfigError as error:
            return error.option
        return "asked"

    instance = run_to_end(story.start())
    assert (instance.output, steps(instance)) == (option, [])


def test_nobody_else_can_send_the_event_that_answers(ask: Any) -> None:
    """Neither through send_event, nor as a declared type, nor by waiting for it, nor by taking its dedup key."""
    instance = ask.start(ASKED)
    with running_shift():
        wait_for(instance, "waiting")
        (own,) = step(instance, "decide").event_types
        with pytest.raises(InvalidNameError, match="reserved"):
            instance.send_event(own, {"value": GOOD, "comment": ""})
        with pytest.raises(InvalidNameError, match="reserved"):
            instance.send_event("other", 1, dedup_key=own)
        assert Row.objects.count() == 0
    with pytest.raises(TypeError, match="reserved"):
        Event(own)


def test_a_wait_for_a_reserved_type_is_refused() -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.wait_for_event("mine", "reprise:request:1:1")
        except InvalidNameError as error:
            return error.rule
        return "waited"

    assert "reserved" in run_to_end(story.start()).output


def test_the_second_answer_is_told_who_was_first(ask: Any) -> None:
    """HC-13"""
    instance = ask.start(ASKED)
    with running_shift():
        wait_for(instance, "waiting")
        first = answer(instance, "decide", GOOD, by="ada", comment="fine")
        for value in (GOOD, {"approved": False, "amount": 0}):
            with pytest.raises(RequestAnsweredError) as caught:
                answer(instance, "decide", value, by="bob")
            assert (caught.value.answered_by, caught.value.comment) == ("ada", "fine")
            assert caught.value.answered_at == first.received_at
        wait_for(instance)
    assert instance.output[3] == "ada"
    with pytest.raises(RequestAnsweredError):
        answer(instance, "decide", GOOD, by="bob")
    assert (Row.objects.count(), Audit.objects.filter(verb="answer").count()) == (1, 1)


def test_of_two_answers_at_once_one_counts_and_the_other_is_told(ask: Any) -> None:
    """HC-13"""
    instances = [ask.start(ASKED) for _ in range(8)]
    told: list[tuple[int, str, str]] = []
    together = threading.Barrier(2)

    def give(name: str) -> None:
        try:
            for at, instance in enumerate(instances):
                together.wait(60)
                try:
                    answer(instance, "decide", GOOD, by=name)
                    told.append((at, name, "taken"))
                except RequestAnsweredError as error:
                    told.append((at, name, error.answered_by))
        finally:
            connections.close_all()

    with shifts.running_shift():
        for instance in instances:
            shifts.wait_for(instance, "waiting")
        people = [threading.Thread(target=give, args=(name,)) for name in ("ada", "bob")]
        for person in people:
            person.start()
        for person in people:
            person.join(60)
        for instance in instances:
            shifts.wait_for(instance)
    for at, instance in enumerate(instances):
        won = instance.output[3]
        lost = "bob" if won == "ada" else "ada"
        assert sorted(one[1:] for one in told if one[0] == at) == sorted([(won, "taken"), (lost, won)])
    assert Row.objects.filter(state="consumed").count() == Row.objects.count() == len(instances)


def test_an_answer_while_no_worker_is_up_is_taken_by_the_next(ask: Any) -> None:
    instance = ask.start(ASKED)
    with running_shift():
        wait_for(instance, "waiting")
    answer(instance, "decide", GOOD, by="ada")
    assert (instance.refresh().status, step(instance, "decide").status) == ("waiting", "waiting")
    assert not open_requests().exists()
    age(instance, hours=2)  # long after its deadline: the answer was in time
    Row.objects.update(received_at=step(instance, "decide").started_at + timedelta(minutes=1))
    assert run_to_end(instance).output[3] == "ada"


def test_an_answer_survives_the_worker_that_has_taken_it(ask: Any) -> None:
    instance = ask.start(ASKED)
    with shifts.running_shift():
        shifts.wait_for(instance, "waiting")
        answer(instance, "decide", GOOD, by="ada")
        crash()
        shifts.wait_for(instance)
    assert instance.output[3] == "ada"


def test_it_expires_at_its_moment_and_takes_no_answer_then(ask: Any) -> None:
    instance = ask.start(ASKED)
    with running_shift():
        wait_for(instance, "waiting")
    age(instance, hours=1)
    assert not open_requests().exists()
    with pytest.raises(RequestClosedError, match="expired"):
        answer(instance, "decide", GOOD, by="ada")
    run_to_end(instance)
    assert instance.output == ["late", "decide", 3600.0, 'Nobody answered request "decide" within 1 h 00 m.']
    assert statuses(instance) == {"decide": "errored"}
    with pytest.raises(RequestClosedError, match="expired"):
        answer(instance, "decide", GOOD, by="ada")


def test_an_answer_in_the_last_second_is_refused_since_its_commit_may_come_too_late(ask: Any) -> None:
    instance = ask.start(ASKED)
    with running_shift():
        wait_for(instance, "waiting")
    age(instance, minutes=59, seconds=59.5)
    with pytest.raises(RequestClosedError, match="expired"):
        answer(instance, "decide", GOOD, by="ada")


def test_answers_that_race_the_deadline_count_or_are_refused_never_both() -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            return (await step.request("ask", bool, message="Quick!", timeout=1.2)).answered_by
        except RequestTimeoutError:
            return "nobody"

    instances = [story.start() for _ in range(12)]
    told: list[str] = []
    with shifts.running_shift():
        shifts.wait_until(lambda: all(one.refresh().status in ("waiting", "complete") for one in instances))
        for instance in instances:
            try:
                answer(instance, "ask", True, by="ada")
                told.append("ada")
            except RequestClosedError:
                told.append("nobody")
        for instance in instances:
            shifts.wait_for(instance)
    assert [instance.output for instance in instances] == told


def test_an_answer_to_a_paused_instance_is_kept_until_it_is_resumed(ask: Any) -> None:
    instance = ask.start(ASKED)
    with running_shift():
        wait_for(instance, "waiting")
        expires_at = step(instance, "decide").wake_at
        instance.pause()
        assert open_requests().count() == 1
        answer(instance, "decide", GOOD, by="ada")
        assert instance.refresh().status == "paused"
        assert not open_requests().exists()
        assert step(instance, "decide").wake_at == expires_at
        instance.resume()
        wait_for(instance)
    assert instance.output[3] == "ada"


def test_a_pause_does_not_shift_the_moment_at_which_it_expires(ask: Any) -> None:
    instance = ask.start(ASKED)
    with running_shift():
        wait_for(instance, "waiting")
        expires_at = step(instance, "decide").wake_at
        instance.pause()
        wait_until(lambda: instance.refresh().status == "paused")
        instance.resume()
        wait_for(instance, "waiting")
    assert step(instance, "decide").wake_at == expires_at


def test_a_finished_instance_takes_no_answer(ask: Any) -> None:
    instance = ask.start(ASKED)
    with shifts.running_shift():
        shifts.wait_for(instance, "waiting")
        instance.terminate()
    with pytest.raises(InstanceFinishedError):
        answer(instance, "decide", GOOD, by="ada")
    assert not open_requests().exists()
    assert (Row.objects.count(), statuses(instance)) == (0, {"decide": "cancelled"})


def test_an_instance_that_is_to_be_rolled_back_takes_no_answer() -> None:
    """Also while no worker runs that could withdraw the request: nothing would read the answer"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("reserve", str, rollback=lambda ctx: None)
        await step.request("ask", bool, message="Go on?")

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_for(instance, "waiting")
    instance.terminate(rollback=True)
    assert not open_requests().exists()
    with pytest.raises(RequestClosedError, match="rolled back"):
        answer(instance, "ask", True, by="ada")
    shifts.run_to_end(instance)
    assert (instance.rollback, Row.objects.count()) == ("complete", 0)


def test_a_request_that_the_workflow_gave_up_is_withdrawn() -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        asked = asyncio.ensure_future(step.request("ask", bool, message="Go on?"))
        other = asyncio.ensure_future(step.wait_for_event("never mind"))
        await asyncio.wait([asked, other], return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        await step.wait_for_event("end")
        return "went on"

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.send_event("never mind")
        wait_until(lambda: statuses(instance).get("ask") == "cancelled")
        with pytest.raises(RequestClosedError, match="withdrawn"):
            answer(instance, "ask", True, by="ada")
        instance.send_event("end")
        assert wait_for(instance).output == "went on"


def test_requests_side_by_side_are_answered_each_for_itself() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        names = ["one", "two", "two"]
        given = [step.request(name, str, message=f"Name {name}") for name in names]
        return [one.value for one in await asyncio.gather(*given)]

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        answer(instance, 3, "c", by="ada")
        answer(instance, "one", "a", by="ada")
        answer(instance, "two", "b", by="ada")
        assert wait_for(instance).output == ["a", "b", "c"]


class TestAssignees:
    @pytest.fixture
    def people(self) -> Iterator[dict[str, User]]:
        finance = Group.objects.create(name="finance")
        names = ("ada", "bob", "root")
        made = {name: User.objects.create_user(name, is_superuser=name == "root") for name in names}
        made["ada"].groups.add(finance)
        yield made
        User.objects.filter(username__in=names).delete()
        finance.delete()

    def test_only_those_who_were_asked_may_answer(self, ask: Any, people: dict[str, User]) -> None:
        instance = ask.start({**ASKED, "assignees": ["group:finance", "carl"]})
        with running_shift():
            wait_for(instance, "waiting")
            with pytest.raises(RequestForbiddenError, match="assigned to group:finance, carl"):
                answer(instance, "decide", GOOD, by=people["bob"])
            assert (instance.refresh().status, Row.objects.count()) == ("waiting", 0)
            answer(instance, "decide", GOOD, by=people["ada"])
            wait_for(instance)
        assert instance.output[3] == "ada"
        assert Audit.objects.get(verb="answer").user_key == str(people["ada"].pk)

    @pytest.mark.parametrize("assignees", [["bob"], []])
    def test_a_superuser_always_may_and_anybody_where_nobody_is_named(
        self, ask: Any, people: dict[str, User], assignees: list[str]
    ) -> None:
        instance = ask.start({**ASKED, "assignees": assignees})
        with running_shift():
            wait_for(instance, "waiting")
            answer(instance, "decide", GOOD, by=people["root" if assignees else "bob"])
            wait_for(instance)

    def test_open_requests_are_found_by_whom_they_are_put_to(self, ask: Any) -> None:
        for assignees in (["ada"], ["group:finance", "bob"], []):
            ask.start({**ASKED, "assignees": assignees})
        with running_shift():
            wait_until(lambda: open_requests().count() == 3)

        def found(*names: str, nobody: bool = False) -> list[list[str]]:
            return sorted(one.assignees for one in put_to(names, nobody=nobody))

        assert found("ada") == [["ada"]]
        assert found("ada", "group:finance") == [["ada"], ["group:finance", "bob"]]
        assert found("group:ops", nobody=True) == [[]]
        assert found("carl") == []


def test_an_answer_of_a_transaction_that_is_rolled_back_was_never_given(ask: Any) -> None:
    instance = ask.start(ASKED)
    with running_shift():
        wait_for(instance, "waiting")
        with transaction.atomic():
            answer(instance, "decide", GOOD, by="ada")
            transaction.set_rollback(True)
        assert (open_requests().count(), Audit.objects.filter(verb="answer").count()) == (1, 0)
        answer(instance, "decide", GOOD, by="bob")
        assert wait_for(instance).output[3] == "bob"


@dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("odd")


def test_an_answer_that_only_the_type_refuses_pauses_the_instance_with_the_reason() -> None:
    """A JSON Schema cannot hold what a type's own validators say."""

    @workflow
    async def story(step: WorkflowStep) -> int:
        return (await step.request("ask", Even, message="An even number?")).value.number

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        answer(instance, "ask", {"number": 3}, by="ada")
        wait_for(instance, "paused")
    assert instance.pause_reason["type"] == "NonDeterminismError"
    assert "odd" in instance.pause_reason["message"]
