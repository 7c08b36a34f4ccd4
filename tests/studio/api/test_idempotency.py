"""The header Idempotency-Key: a repeated request does nothing and gets the first answer."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.http import HttpResponse
from django.utils import timezone

from engine.models import Event, Instance, Step
from engine.steer import housekeeping
from studio.access.permissions import Verb
from studio.models import IdempotencyKey, Throttle, Token, expired
from tests.integration.sessions import in_background, together, until_blocked
from tests.sample.workflows import process_order, tick
from tests.studio import factories
from tests.studio.api.conftest import Program, Programs, trail
from tests.studio.api.routes import address, body, operations

TICK = "/workflows/tick/instances"
DECIDED = (200, 201, 202, 409)  # answers that are kept
POSTS = [name for name, one in operations().items() if one.method == "POST"]


def code(answer: HttpResponse) -> str:
    return str(json.loads(answer.content)["code"])


def same(first: HttpResponse, second: HttpResponse) -> bool:
    names = ("Content-Type", "Location", "ETag")
    return (
        (first.status_code, first.content) == (second.status_code, second.content)
        and [first.headers.get(name) for name in names] == [second.headers.get(name) for name in names]
        and (first.headers.get("Idempotency-Replayed"), second["Idempotency-Replayed"]) == (None, "true")
    )


def age(hours: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE studio_idempotencykey SET created_at = created_at - make_interval(hours => %s)", [hours]
        )


@pytest.mark.django_db
class TestRepeated:
    @pytest.mark.parametrize("name", POSTS)
    def test_every_post_answers_as_the_first_time(self, program_of: Programs, name: str) -> None:
        instance = process_order.start({"customer": "Ada", "items": [{"sku": "pen", "quantity": 2}]})
        program, one = program_of("root"), operations()[name]
        where, given = address(one, instance), body(one, instance)
        first = program.send("POST", where, given, Idempotency_Key="k-1")
        state = (
            Instance.objects.values().get(key=instance.key),
            trail().count(),
            Event.objects.count(),
        )
        second = program.send("POST", where, given, Idempotency_Key="k-1")
        if first.status_code in DECIDED:
            assert same(first, second)
        else:
            assert (first.status_code, first.content) == (second.status_code, second.content)
        assert state == (
            Instance.objects.values().get(key=instance.key),
            trail().count(),
            Event.objects.count(),
        )

    def test_without_a_key_each_is_another(self, program: Program) -> None:
        assert {program.post(TICK).status_code for _ in range(2)} == {201}
        assert Instance.objects.count() == 2
        assert not IdempotencyKey.objects.exists()

    def test_refusals_of_the_engine_are_answers_and_leave_nothing_written(self, program: Program) -> None:
        instance = tick.start(id="one")
        first = program.post(TICK, {"id": "one"}, Idempotency_Key="k-1")
        assert (first.status_code, code(first)) == (409, "id_in_use")
        instance.terminate()
        instance.delete(reason="x")
        assert same(first, program.post(TICK, {"id": "one"}, Idempotency_Key="k-1"))
        assert not Instance.objects.exists()

    def test_what_may_be_right_later_is_done_then(self, program: Program) -> None:
        where = "/workflows/tick/instances/one/pause"
        assert program.post(where, Idempotency_Key="k-1").status_code == 404
        instance = tick.start(id="one")
        stale = program.post(where, Idempotency_Key="k-1", If_Match='"stale"')
        assert (stale.status_code, code(stale)) == (412, "stale")
        assert program.post(where, Idempotency_Key="k-1", If_Match="*").status_code == 200
        assert instance.refresh().status == "paused"
        wrong = program.post(TICK, {"id": "not an id"}, Idempotency_Key="k-2")
        assert (wrong.status_code, code(wrong)) == (422, "invalid_name")
        assert program.post(TICK, {"id": "an-id"}, Idempotency_Key="k-2").status_code == 201

    def test_another_request_with_the_key_is_refused(self, program: Program) -> None:
        """E47"""
        program.post(TICK, {"tags": ["a"]}, Idempotency_Key="k-1")
        for where, given in ((TICK, {"tags": ["b"]}), (TICK, {}), (f"{TICK}/batch", {"items": []})):
            answer = program.post(where, given, Idempotency_Key="k-1")
            assert (answer.status_code, code(answer)) == (422, "idempotency_key_reused")
        assert Instance.objects.get().tags == ["a"]

    def test_keys_belong_to_the_token(self, program_of: Programs) -> None:
        for program in (program_of(), program_of(), program_of(None, name="team")):
            assert "Idempotency-Replayed" not in program.post(TICK, Idempotency_Key="k-1")
        assert Instance.objects.count() == 3

    def test_a_key_is_kept_for_a_day(self, program: Program) -> None:
        program.post(TICK, Idempotency_Key="k-1")
        age(23)
        assert program.post(TICK, Idempotency_Key="k-1")["Idempotency-Replayed"] == "true"
        age(2)
        assert program.post(TICK, {"tags": ["b"]}, Idempotency_Key="k-1").status_code == 201
        assert [one.tags for one in Instance.objects.order_by("key")] == [[], ["b"]]

    def test_old_keys_are_deleted(self, program: Program) -> None:
        for number in range(3):
            program.post(TICK, Idempotency_Key=f"k-{number}")
        age(25)
        program.post(TICK, Idempotency_Key="new")
        assert [one.name for one in IdempotencyKey.objects.all()] == ["new"]

    def test_a_refused_sender_uses_no_key(self, program_of: Programs) -> None:
        program = program_of(verbs=[Verb.VIEW])
        assert program.post(TICK, Idempotency_Key="k-1").status_code == 403
        assert not IdempotencyKey.objects.exists()

    def test_what_is_stored_holds_no_value_of_the_request(self, program: Program) -> None:
        order = {"customer": "Ada Canary", "items": [{"sku": "pen", "quantity": 2}]}
        where = "/workflows/process-order/instances"
        assert program.post(where, {"params": order}, Idempotency_Key="k-1").status_code == 201
        found = program.post("/events", _event("Canary"), Idempotency_Key="k-2")
        assert found.status_code == 202
        rows = list(IdempotencyKey.objects.values())
        assert len(rows) == 2
        assert "Canary" not in str(rows)


def _event(payload: Any) -> dict[str, Any]:
    instance = Instance.objects.get()
    return {"workflow": instance.workflow, "id": instance.id, "type": "paid", "payload": payload}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("key", "status"),
    [
        ("", 422),
        ("   ", 422),
        ("x" * 256, 422),
        ("x" * 10_000, 422),
        ("a\0b", 422),
        ("a\tb", 422),
        ("é", 422),
        ("\x85", 422),
        ("one,two", 400),  # as servers join two headers
        ("x" * 255, 201),
        ('"quoted 8e03978e-40d5"', 201),
    ],
)
def test_keys_are_short_and_printable(program: Program, key: str, status: int) -> None:
    """F24"""
    answer = program.post(TICK, Idempotency_Key=key)
    assert answer.status_code == status
    if status >= 400:
        assert code(answer) == "invalid_idempotency_key"
        assert not Instance.objects.exists()


@pytest.mark.usefixtures("engine_db")
class TestTogether:
    """Real sessions of the database."""

    def test_equal_requests_at_once_start_one(self, program: Program) -> None:
        answers = together(8, lambda number: program.post(TICK, {"tags": ["a"]}, Idempotency_Key="k-1"))
        statuses = [answer.status_code for answer in answers if isinstance(answer, HttpResponse)]
        assert statuses == [201] * 8
        assert len({answer.content for answer in answers if isinstance(answer, HttpResponse)}) == 1
        assert (Instance.objects.count(), trail().count()) == (1, 1)

    def test_one_that_comes_before_the_answer_waits_for_it(self, program: Program) -> None:
        instance = tick.start()
        where = f"/workflows/tick/instances/{instance.id}/pause"
        with transaction.atomic():
            Instance.objects.select_for_update().get(key=instance.key)
            first = in_background(lambda: program.post(where, Idempotency_Key="k-1"))
            until_blocked()
            second = in_background(lambda: program.post(where, Idempotency_Key="k-1"))
        answers = [first(), second()]
        assert [answer.status_code for answer in answers if isinstance(answer, HttpResponse)] == [200, 200]
        assert trail().filter(verb="pause").count() == 1

    def test_a_request_that_is_put_meanwhile_is_not_answered_without_the_verb(
        self, program_of: Programs
    ) -> None:
        viewer = program_of(None, verbs=[Verb.VIEW])
        instance = factories.instance("waiting", workflow="tick")
        where = f"/workflows/tick/instances/{instance.id}/requests/1/answer"
        with transaction.atomic():
            key = f"token:{Token.objects.get().key}"
            IdempotencyKey.objects.create(principal=key, name="k-1", digest="of another")
            answering = in_background(lambda: viewer.post(where, {"answer": True}, Idempotency_Key="k-1"))
            until_blocked()
            step = in_background(lambda: factories.request(instance))()
            transaction.set_rollback(True)
        answer = answering()
        assert isinstance(step, Step)
        assert step.seq == 1
        assert isinstance(answer, HttpResponse)
        assert (answer.status_code, code(answer)) == (403, "not_asked")
        assert not Event.objects.exists()

    def test_one_that_failed_is_done_again(self, program: Program) -> None:
        """A database that ends the session between two statements: 503, and nothing of it is kept."""
        instance = factories.instance("waiting", workflow="tick")
        where = f"/workflows/tick/instances/{instance.id}/pause"
        with transaction.atomic():
            Instance.objects.select_for_update().get(key=instance.key)
            first = in_background(lambda: program.post(where, Idempotency_Key="k-1"))
            until_blocked()
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted")
            answer = first()
        assert isinstance(answer, HttpResponse)
        assert (answer.status_code, code(answer), answer["Retry-After"]) == (503, "database_unavailable", "5")
        again = program.post(where, Idempotency_Key="k-1")
        assert (again.status_code, "Idempotency-Replayed" in again) == (200, False)
        assert instance.refresh().status == "paused"


@pytest.mark.django_db
def test_what_is_over_goes_although_no_request_comes_any_more(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        program.post(TICK, {}, Idempotency_Key=f"old-{number}")
    program.post(TICK, {}, Idempotency_Key="new")
    now = timezone.now()
    IdempotencyKey.objects.exclude(name="new").update(created_at=now - timedelta(hours=25))
    Throttle.objects.create(key="over", n=1, ends_at=now - timedelta(seconds=1))
    Throttle.objects.create(key="counting", n=1, ends_at=now + timedelta(minutes=1))

    assert expired.sweep in housekeeping.sweepers()
    monkeypatch.setattr(expired, "BATCH", 2)
    expired.sweep()

    assert [row.name for row in IdempotencyKey.objects.all()] == ["new"]
    assert {"over", "counting"} & set(Throttle.objects.values_list("key", flat=True)) == {"counting"}
