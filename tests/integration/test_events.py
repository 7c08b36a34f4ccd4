"""Sending events: buffered once, in order, for instances that are not finished; and which of them wake."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction

from engine import (
    DedupConflictError,
    Event,
    InstanceFinishedError,
    InstanceNotFoundError,
    InvalidNameError,
    InvalidParamsError,
    InvalidValueError,
    LimitError,
    models,
)
from engine.models import Audit, Instance
from engine.steer import events
from engine.steer.lifecycle import lock
from tests.integration.rows import NOW, leased, row_of, step_of
from tests.integration.sessions import Hints, in_background, together, until_blocked
from tests.sample.workflows import Approval, order_approved, tick

LATER = NOW.replace(year=2100)
WAITING: dict[str, Any] = {"status": "waiting", "waiting_for": "event", "wake_at": None}
FINISHED = {"status": "complete", "finished_at": NOW, "wake_at": None}
PAUSED = {"status": "paused", "paused_at": NOW, "wake_at": None}


def payloads(instance: Instance) -> list[Any]:
    return [event.payload for event in models.Event.objects.filter(instance=instance).order_by("key")]


@pytest.mark.django_db
def test_what_is_returned_is_what_is_stored() -> None:
    instance = row_of()
    event = instance.send_event("paid", {"b": 1e16, "a": -0.0}, dedup_key="k", by="shop")
    stored = models.Event.objects.get(key=event.key)
    names = [field.attname for field in models.Event._meta.concrete_fields]
    assert {name: getattr(event, name) for name in names} == {name: getattr(stored, name) for name in names}
    assert (stored.type, repr(stored.payload)) == ("paid", "{'b': 1e+16, 'a': -0.0}")
    assert (stored.dedup_key, stored.sent_by, stored.state) == ("k", "shop", "buffered")


@pytest.mark.django_db
def test_an_instance_that_waits_for_it_is_due_at_once() -> None:
    """Also if something else is what it waits for first."""
    instance = row_of(**{**WAITING, "waiting_for": "sleep", "wake_at": LATER})
    step_of(instance, kind="sleep", status="waiting", wake_at=LATER)
    step_of(instance, 2, kind="event", status="waiting", event_types=["refused", "paid"])
    instance.send_event("paid")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT wake_at <= clock_timestamp() FROM engine_instance WHERE key = %s", [instance.key]
        )
        assert cursor.fetchone() == (True,)
    assert instance.refresh().signals == 1


@pytest.mark.django_db
def test_an_instance_that_waits_for_none_of_its_type_sleeps_on() -> None:
    instance = row_of(**{**WAITING, "wake_at": LATER})
    step_of(instance, kind="event", status="waiting", event_types=["refused"], wake_at=LATER)
    step_of(instance, 2, kind="event", status="cancelled", event_types=["paid"], finished_at=NOW)
    step_of(instance, 3, kind="event", status="waiting", event_types=["paid"], generation=2)
    for _ in range(20):
        instance.send_event("paid")
    assert (instance.refresh().wake_at, instance.signals, len(payloads(instance))) == (LATER, 20, 20)


@pytest.mark.django_db
def test_a_leased_row_keeps_its_lease_and_gets_a_signal() -> None:
    """The worker compares the signals when it parks."""
    instance = leased(row_of())
    lease = instance.wake_at
    instance.send_event("paid")
    instance.refresh()
    assert (instance.wake_at, instance.owner, instance.signals, instance.status) == (lease, 7, 1, "running")


@pytest.mark.django_db
def test_events_are_buffered_while_paused_or_queued() -> None:
    """Guarantee 11, CF-55."""
    paused, queued = row_of(id="paused", **PAUSED), row_of(id="queued")
    due = queued.wake_at
    for instance in (paused, queued):
        instance.send_event("never-awaited", 1)
        assert payloads(instance) == [1]
    assert (paused.refresh().wake_at, queued.refresh().wake_at) == (None, due)


@pytest.mark.django_db
def test_a_finished_instance_takes_no_events() -> None:
    instance = row_of(**FINISHED)
    with pytest.raises(InstanceFinishedError):
        instance.send_event("paid")
    assert payloads(instance) == []
    assert instance.refresh().signals == 0


@pytest.mark.django_db(transaction=True)
def test_an_instance_that_is_restarted_while_an_event_is_refused_takes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = row_of()
    instance.terminate()

    def lock_after_a_restart(one: Instance) -> Instance:
        Instance.objects.get(key=instance.key).restart()
        return lock(one)

    monkeypatch.setattr(events, "lock", lock_after_a_restart)
    sent = events.send_event(instance, "paid", {"a": 1}, by="ada")
    assert list(instance.events.values_list("key", "type", "state")) == [(sent.key, "paid", "buffered")]


@pytest.mark.django_db
def test_an_instance_that_is_gone_is_not_found() -> None:
    instance = row_of()
    Instance.objects.filter(key=instance.key).delete()
    with pytest.raises(InstanceNotFoundError):
        instance.send_event("paid")


@pytest.mark.django_db
def test_a_repeated_send_is_one_event() -> None:
    instance = row_of()
    first = instance.send_event("paid", {"a": 1, "b": 2}, dedup_key="k")
    again = instance.send_event("paid", {"b": 2, "a": 1}, dedup_key="k")
    assert again == first
    assert payloads(instance) == [{"a": 1, "b": 2}]
    assert instance.refresh().signals == 1


@pytest.mark.django_db
def test_a_repeated_send_after_the_end_still_finds_its_event() -> None:
    """The answer was lost, and the instance has already handled the event."""
    instance = row_of()
    first = instance.send_event("paid", 1, dedup_key="k")
    instance.terminate()
    assert instance.send_event("paid", 1, dedup_key="k") == first
    with pytest.raises(InstanceFinishedError):
        instance.send_event("paid", 1, dedup_key="another")


@pytest.mark.django_db
@pytest.mark.parametrize(("type", "payload"), [("paid", 2), ("paid", 1.0), ("paid", True), ("refunded", 1)])
def test_another_event_under_the_same_key_is_refused(type: str, payload: Any) -> None:
    instance = row_of()
    instance.send_event("paid", 1, dedup_key="k")
    with transaction.atomic():
        with pytest.raises(DedupConflictError):
            instance.send_event(type, payload, dedup_key="k")
        instance.send_event(type, payload, dedup_key="another")
    assert payloads(instance) == [1, payload]
    assert instance.refresh().signals == 2


@pytest.mark.django_db
def test_a_dedup_key_belongs_to_its_instance() -> None:
    one, two = row_of(id="one"), row_of(id="two")
    one.send_event("paid", 1, dedup_key="k")
    two.send_event("paid", 2, dedup_key="k")
    assert (payloads(one), payloads(two)) == ([1], [2])


@pytest.mark.django_db
def test_a_declared_event_is_validated_whoever_names_it() -> None:
    """LC-38: the sender's error, and nothing is delivered."""
    instance = row_of()
    for event_type in (order_approved, "order-approved"):
        with pytest.raises(InvalidParamsError) as caught:
            instance.send_event(event_type, {"approved": "perhaps"})
        assert caught.value.errors[0]["path"] == "approved"
    instance.send_event(order_approved, Approval(approved=True))
    instance.send_event("order-approved", {"approved": False})
    assert payloads(instance) == [{"approved": True, "comment": ""}, {"approved": False, "comment": ""}]


@pytest.mark.django_db
@pytest.mark.parametrize("type", ["", " ", "x" * 101, "a\0", "a\nb", "\ud800", None, 7])
def test_a_wrong_type_sends_nothing(type: Any) -> None:
    """CF-58 (dots are fine here)."""
    instance = row_of()
    with pytest.raises(InvalidNameError):
        instance.send_event(type)
    instance.send_event("order.paid")
    assert [event.type for event in models.Event.objects.all()] == ["order.paid"]


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", " ", "x" * 256, "a\0", "\ud800", 7])
def test_a_wrong_dedup_key_sends_nothing(key: Any) -> None:
    instance = row_of()
    with pytest.raises(InvalidNameError):
        instance.send_event("paid", dedup_key=key)
    assert payloads(instance) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (float("inf"), InvalidValueError),
        ("a\0b", InvalidValueError),
        ({"a": {1, 2}}, InvalidValueError),
        (2**63, InvalidValueError),
        ("x" * 2**20, LimitError),
    ],
)
def test_a_payload_that_cannot_be_stored_sends_nothing(payload: Any, error: type[Exception]) -> None:
    instance = row_of()
    with pytest.raises(error):
        instance.send_event("paid", payload)
    assert payloads(instance) == []


@pytest.mark.django_db
def test_a_full_buffer_takes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Consumed events do not count."""
    monkeypatch.setattr(events, "MAX_BUFFERED", 3)
    instance = row_of()
    sent = [instance.send_event("paid", n, dedup_key=f"k{n}") for n in range(3)]
    with pytest.raises(LimitError, match="limit is 3"):
        instance.send_event("paid", 3)
    assert instance.send_event("paid", 1, dedup_key="k1") == sent[1]
    assert instance.refresh().signals == 3
    models.Event.objects.filter(key=sent[0].key).update(
        state="consumed", consumed_generation=1, consumed_by=1
    )
    instance.send_event("paid", 4)
    assert payloads(instance) == [0, 1, 2, 4]


@pytest.mark.django_db
def test_a_person_who_sends_is_in_the_trail_and_a_program_is_not() -> None:
    instance = row_of()
    instance.send_event("paid", by="ada", reason="by phone")
    instance.send_event("paid")
    trail = Audit.objects.get()
    assert (trail.verb, trail.actor, trail.reason) == ("send_event", "ada", "by phone")
    assert (trail.before, trail.after, trail.data) == ("queued", "queued", {"type": "paid"})


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("state", "type", "wake"),
    [
        (WAITING, "paid", [("engine_wake", "")]),
        (WAITING, "other", []),
        ({}, "paid", []),
        (PAUSED, "paid", []),
    ],
)
def test_only_a_parked_instance_that_waits_for_it_needs_a_worker(
    state: dict[str, Any], type: str, wake: list[tuple[str, str]], hints: Hints
) -> None:
    instance = row_of(**state)
    step_of(instance, kind="event", status="waiting", event_types=["paid"])
    instance.send_event(type)
    assert sorted(hints.heard()) == [("engine_changed", str(instance.key)), *wake]


@pytest.mark.django_db(transaction=True)
def test_the_worker_that_holds_it_is_told(hints: Hints) -> None:
    instance = leased(row_of(), worker_id=42)
    instance.send_event("paid")
    assert sorted(hints.heard()) == [("engine_changed", str(instance.key)), ("engine_wake", "42")]


@pytest.mark.django_db(transaction=True)
def test_a_send_takes_effect_with_the_callers_commit(hints: Hints) -> None:
    """Guarantee 19."""
    instance = row_of(**WAITING)
    step_of(instance, kind="event", status="waiting", event_types=["paid"])
    with suppress(ZeroDivisionError), transaction.atomic():
        instance.send_event("paid", "never")
        raise ZeroDivisionError
    assert (payloads(instance), hints.heard()) == ([], [])
    with transaction.atomic():
        instance.send_event("paid", "now")
        assert hints.heard() == []
    assert payloads(instance) == ["now"]
    assert ("engine_wake", "") in hints.heard()


@pytest.mark.django_db(transaction=True)
def test_twenty_sends_of_one_key_are_one_event() -> None:
    instance = row_of(**WAITING)
    results = together(20, lambda number: events.send_event(instance, "paid", {"a": 1}, dedup_key="k").key)
    assert [result for result in results if isinstance(result, Exception)] == []
    assert len(set(results)) == 1
    assert payloads(instance) == [{"a": 1}]


@pytest.mark.django_db(transaction=True)
def test_events_of_many_senders_are_in_the_order_of_their_keys() -> None:
    """I8: keys and times follow the order in which the senders held the row."""
    instance = row_of(**WAITING)
    results = together(
        20, lambda number: [events.send_event(instance, "paid", number * 10 + n) for n in range(5)]
    )
    assert [result for result in results if isinstance(result, Exception)] == []
    times = list(models.Event.objects.order_by("key").values_list("received_at", flat=True))
    assert len(times) == 100
    assert times == sorted(times)
    assert instance.refresh().signals == 100


@pytest.mark.django_db(transaction=True)
def test_an_event_and_a_termination_at_once_do_not_contradict() -> None:
    """The event was taken by an instance that was open, or refused by one that was not."""
    instance = row_of()
    with transaction.atomic():
        instance.terminate()
        answer = in_background(lambda: events.send_event(instance, "paid"))
        until_blocked()
    assert isinstance(answer(), InstanceFinishedError)
    assert payloads(instance) == []


@pytest.mark.django_db(transaction=True)
def test_an_event_that_waits_for_a_parking_worker_wakes_it_again() -> None:
    """The park holds the row, the sender waits behind it, and finds the instance parked."""
    instance = leased(row_of())
    with transaction.atomic():
        step_of(instance, kind="event", status="waiting", event_types=["paid"])
        Instance.objects.filter(key=instance.key).update(**WAITING, owner=None)
        answer = in_background(lambda: events.send_event(instance, "paid"))
        until_blocked()
    assert isinstance(answer(), models.Event)
    assert instance.refresh().wake_at is not None


@pytest.mark.django_db(transaction=True)
def test_the_async_twin_does_the_same() -> None:
    instance = tick.start()
    event = async_to_sync(instance.asend_event)("paid", {"a": 1}, dedup_key="k", by="ada")
    assert (event.payload, event.dedup_key, event.sent_by) == ({"a": 1}, "k", "ada")


def test_undeclared_payloads_of_a_declared_event_may_be_any_json() -> None:
    assert Event("sample-any").encode({"a": [1]}) == '{"a":[1]}'
