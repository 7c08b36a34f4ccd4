"""Pausing, resuming and terminating: what each does in each status, and when two of them race."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from engine import InstanceFinishedError, InstanceNotFoundError, InvalidValueError, LimitError
from engine.models import Attempt, Audit, Event, Instance, Step
from engine.steer import lifecycle
from engine.values.states import InstanceStatus
from tests.integration.rows import NOW, attempt_of, row_of, step_of
from tests.integration.sessions import Hints, in_background, together, until_blocked
from tests.sample.workflows import tick

LATER = timezone.now() + timedelta(hours=1)
STATES: dict[str, dict[str, Any]] = {
    "queued": {},
    "running": {"status": "running", "owner": 7},
    "waiting": {"status": "waiting", "waiting_for": "event", "wake_at": None},
    "sleeping": {"status": "waiting", "waiting_for": "sleep", "wake_at": LATER},
    "waiting_for_pause": {"status": "waiting_for_pause", "owner": 7},
    "paused": {"status": "paused", "paused_at": NOW, "wake_at": None},
    "complete": {"status": "complete", "finished_at": NOW, "wake_at": None},
    "errored": {"status": "errored", "finished_at": NOW, "wake_at": None},
    "terminated": {"status": "terminated", "finished_at": NOW, "wake_at": None},
}


def in_state(state: str) -> Instance:
    return row_of(**STATES[state])


def columns(instance: Instance) -> dict[str, Any]:
    return Instance.objects.values().get(key=instance.key)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("action", "state", "after"),
    [
        ("pause", "queued", "paused"),
        ("pause", "running", "waiting_for_pause"),
        ("pause", "waiting", "paused"),
        ("pause", "sleeping", "paused"),
        ("resume", "paused", "queued"),
        ("resume", "waiting_for_pause", "running"),
        ("terminate", "queued", "terminated"),
        ("terminate", "running", "terminated"),
        ("terminate", "waiting", "terminated"),
        ("terminate", "sleeping", "terminated"),
        ("terminate", "waiting_for_pause", "terminated"),
        ("terminate", "paused", "terminated"),
    ],
)
def test_an_action_leads_to_its_status_and_into_the_trail(action: str, state: str, after: str) -> None:
    """CF-59, CF-61, CF-62: pause is immediate but for a running body, and resume withdraws it there."""
    instance, user = in_state(state), User.objects.create(username="ada")
    before = instance.status
    answer = getattr(instance, action)(by=user, reason="because")
    assert answer is instance
    assert (instance.status, columns(instance)["status"]) == (after, after)
    trail = Audit.objects.get()
    assert (trail.verb, trail.before, trail.after) == (action, before, after)
    assert (trail.actor, trail.user_key, trail.reason) == ("ada", str(user.pk), "because")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("action", "state"),
    [
        ("pause", "waiting_for_pause"),
        ("pause", "paused"),
        ("pause", "complete"),
        ("pause", "errored"),
        ("pause", "terminated"),
        ("resume", "queued"),
        ("resume", "running"),
        ("resume", "waiting"),
        ("resume", "complete"),
        ("resume", "errored"),
        ("resume", "terminated"),
    ],
)
def test_elsewhere_pause_and_resume_change_nothing(action: str, state: str) -> None:
    """Guarantee 12, CF-67."""
    instance = in_state(state)
    before = columns(instance)
    assert getattr(instance, action)(by="ada").status == before["status"]
    assert columns(instance) == before
    assert Audit.objects.count() == 0


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["complete", "errored", "terminated"])
def test_a_finished_instance_cannot_be_terminated(state: str) -> None:
    """CF-67."""
    instance = in_state(state)
    before = columns(instance)
    with pytest.raises(InstanceFinishedError) as caught:
        instance.terminate(by="ada")
    assert caught.value.status == state
    assert (columns(instance), Audit.objects.count()) == (before, 0)


@pytest.mark.django_db
@pytest.mark.parametrize("action", ["pause", "resume", "terminate"])
def test_an_instance_that_is_gone_is_not_found(action: str) -> None:
    instance = in_state("queued")
    Instance.objects.filter(key=instance.key).delete()
    with pytest.raises(InstanceNotFoundError):
        getattr(instance, action)()


@pytest.mark.django_db
@pytest.mark.parametrize("action", ["pause", "resume", "terminate"])
def test_a_refused_action_leaves_the_callers_transaction_usable(action: str) -> None:
    other = row_of(id="other")
    gone = row_of(id="gone")
    Instance.objects.filter(key=gone.key).delete()
    with transaction.atomic():
        with pytest.raises(InstanceNotFoundError):
            getattr(gone, action)()
        assert other.pause().status == "paused"
    assert columns(other)["status"] == "paused"


@pytest.mark.django_db
def test_a_paused_instance_is_due_never_and_says_since_when() -> None:
    instance = in_state("sleeping").pause()
    assert (instance.wake_at, instance.waiting_for) == (None, "")
    assert instance.paused_at is not None
    assert abs(instance.paused_at - timezone.now()) < timedelta(minutes=1)


@pytest.mark.django_db
@pytest.mark.parametrize(("action", "state"), [("pause", "running"), ("resume", "waiting_for_pause")])
def test_a_leased_row_keeps_its_lease_and_gets_a_signal(action: str, state: str) -> None:
    """Decision 1: another wake_at would let a second worker claim it."""
    instance = in_state(state)
    lease, signals = instance.wake_at, instance.signals
    getattr(instance, action)()
    assert (instance.wake_at, instance.owner, instance.signals) == (lease, 7, signals + 1)


@pytest.mark.django_db
def test_resume_is_due_at_once() -> None:
    instance = in_state("paused").resume()
    assert instance.paused_at is None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT wake_at <= clock_timestamp() FROM engine_instance WHERE key = %s", [instance.key]
        )
        assert cursor.fetchone() == (True,)


@pytest.mark.django_db
def test_resume_shifts_what_waits_by_the_time_paused() -> None:
    """LC-41: timers are shifted, fixed times are not, and finished steps and other generations stay."""
    paused_at = timezone.now() - timedelta(hours=2)
    instance = row_of(status="paused", paused_at=paused_at, wake_at=None, generation=2)
    wake_at = paused_at + timedelta(minutes=30)
    sleep = step_of(instance, 1, generation=2, kind="sleep", status="waiting", wake_at=wake_at)
    moment = step_of(
        instance, 2, generation=2, kind="sleep", status="waiting", wake_at=wake_at, wake_is_fixed=True
    )
    backoff = step_of(instance, 3, generation=2, status="waiting", wake_at=wake_at)
    endless = step_of(instance, 4, generation=2, kind="event", status="waiting")
    ended = step_of(
        instance, 5, generation=2, kind="sleep", status="complete", finished_at=NOW, wake_at=wake_at
    )
    earlier = step_of(instance, 1, generation=1, kind="sleep", status="waiting", wake_at=wake_at)
    instance.resume()

    def shift(step: Step) -> timedelta | None:
        step.refresh_from_db()
        return None if step.wake_at is None else step.wake_at - wake_at

    shifted = shift(sleep)
    assert shifted is not None
    assert timedelta(hours=2) <= shifted < timedelta(hours=2, minutes=1)
    assert shift(backoff) == shifted
    assert [shift(step) for step in (moment, endless, ended, earlier)] == [
        timedelta(0),
        None,
        timedelta(0),
        timedelta(0),
    ]


@pytest.mark.django_db
def test_terminate_ends_all_that_is_open_and_leaves_the_rest() -> None:
    """CF-68, guarantee 13."""
    instance = in_state("running")
    step_of(instance, 1, status="complete", finished_at=NOW, delivery=1, output={"a": 1})
    attempt_of(instance, 1, status="complete", finished_at=NOW)
    step_of(instance, 2)
    attempt_of(instance, 2, status="errored", finished_at=NOW)
    attempt_of(instance, 2, number=2)
    step_of(instance, 3, kind="event", status="waiting")
    Event.objects.create(instance=instance, type="e", payload={}, received_at=NOW)
    fence = instance.fence
    instance.terminate(reason="enough")
    assert (instance.owner, instance.wake_at, instance.waiting_for) == (None, None, "")
    assert instance.finished_at is not None
    assert instance.fence == fence + 1
    steps = Step.objects.filter(instance=instance).order_by("seq").values_list("status", flat=True)
    assert list(steps) == ["complete", "cancelled", "cancelled"]
    attempts = Attempt.objects.filter(instance=instance).order_by("step_seq", "number")
    assert list(attempts.values_list("status", flat=True)) == ["complete", "errored", "cancelled"]
    assert Attempt.objects.filter(instance=instance, finished_at=None).count() == 0
    assert Event.objects.get(instance=instance).state == "buffered"


@pytest.mark.django_db
@pytest.mark.parametrize("action", ["pause", "resume", "terminate"])
@pytest.mark.parametrize("reason", ["x" * 2001, "a\0b", "\udfff"])
def test_a_reason_that_cannot_be_stored_changes_nothing(action: str, reason: str) -> None:
    instance = in_state("waiting")
    before = columns(instance)
    with pytest.raises((LimitError, InvalidValueError)):
        getattr(instance, action)(reason=reason)
    assert columns(instance) == before


@pytest.mark.django_db
def test_a_refreshed_instance_keeps_its_values_unread() -> None:
    key = in_state("queued").key
    instance = Instance.objects.defer("params", "output").get(key=key)
    assert instance.pause().status == "paused"
    assert {"params", "output"} <= instance.get_deferred_fields()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("action", "state", "heard"),
    [
        ("pause", "queued", [("engine_changed", "{key}")]),
        ("pause", "running", [("engine_changed", "{key}"), ("engine_wake", "7")]),
        ("pause", "paused", []),
        ("resume", "paused", [("engine_changed", "{key}"), ("engine_wake", "")]),
        ("resume", "waiting_for_pause", [("engine_changed", "{key}"), ("engine_wake", "7")]),
        ("terminate", "waiting", [("engine_changed", "{key}")]),
        ("terminate", "running", [("engine_changed", "{key}"), ("engine_wake", "7")]),
    ],
)
def test_who_must_know_is_told(action: str, state: str, heard: list[tuple[str, str]], hints: Hints) -> None:
    instance = in_state(state)
    getattr(instance, action)()
    assert sorted(hints.heard()) == [
        (channel, payload.format(key=instance.key)) for channel, payload in heard
    ]


@pytest.mark.django_db(transaction=True)
def test_a_pause_that_is_rolled_back_never_was(hints: Hints) -> None:
    """Guarantee 19."""
    instance = in_state("queued")
    with suppress(ZeroDivisionError), transaction.atomic():
        instance.pause()
        raise ZeroDivisionError
    assert (instance.refresh().status, Audit.objects.count(), hints.heard()) == ("queued", 0, [])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("state", "first", "second", "after"),
    [
        ("queued", "pause", "terminate", ["paused", "terminated"]),
        ("queued", "terminate", "pause", ["terminated", "terminated"]),
        ("paused", "resume", "terminate", ["queued", "terminated"]),
        ("paused", "terminate", "resume", ["terminated", "terminated"]),
        ("queued", "pause", "resume", ["paused", "queued"]),
        ("paused", "resume", "pause", ["queued", "paused"]),
    ],
)
def test_of_two_at_once_the_second_sees_what_the_first_did(
    state: str, first: str, second: str, after: list[str]
) -> None:
    """Each held at the instance's row; the answers are what the record says."""
    instance = in_state(state)
    answers: list[str] = []

    with transaction.atomic():
        answers.append(getattr(Instance.objects.get(key=instance.key), first)().status)
        later = in_background(lambda: getattr(Instance.objects.get(key=instance.key), second)().status)
        until_blocked()
    answers.append(later())
    assert answers == after
    assert instance.refresh().status == after[-1]
    changes = list(Audit.objects.order_by("key").values_list("before", "after"))
    assert all(left[1] == right[0] for left, right in pairwise(changes))


@pytest.mark.django_db(transaction=True)
def test_the_answers_of_many_operators_fit_the_trail() -> None:
    """I16: forty actions at once; each accepted one is in the audit trail, in one order."""
    instance = in_state("queued")
    actions = [lifecycle.pause, lifecycle.resume]
    answers = together(
        40, lambda number: actions[number % 2](Instance.objects.get(key=instance.key), by=f"p{number}")
    )
    assert [answer for answer in answers if isinstance(answer, Exception)] == []
    trail = list(Audit.objects.order_by("key").values_list("before", "after"))
    assert trail[:1] == [("queued", "paused")]
    assert all(left[1] == right[0] for left, right in pairwise(trail))
    assert instance.refresh().status == trail[-1][1]


@pytest.mark.django_db(transaction=True)
def test_of_many_terminations_one_counts() -> None:
    instance = in_state("queued")
    answers = together(10, lambda number: Instance.objects.get(key=instance.key).terminate())
    assert sum(isinstance(answer, InstanceFinishedError) for answer in answers) == 9
    assert Audit.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_open_transaction_delays_its_own_instance_only() -> None:
    """Guarantee 19."""
    held, neighbour = row_of(id="held"), row_of(id="neighbour")
    with transaction.atomic():
        held.pause()
        (answer,) = together(1, lambda number: Instance.objects.get(key=neighbour.key).pause().status)
        assert answer == "paused"


@pytest.mark.django_db(transaction=True)
def test_the_async_twins_do_the_same() -> None:
    instance = tick.start()

    async def work() -> list[str]:
        statuses = [(await instance.apause()).status, (await instance.aresume()).status]
        return [*statuses, (await instance.aterminate()).status, (await instance.arefresh()).status]

    assert async_to_sync(work)() == ["paused", "queued", "terminated", "terminated"]


def test_every_status_is_among_the_states_tried() -> None:
    assert {values.get("status", "queued") for values in STATES.values()} == set(InstanceStatus)
