"""Of many closed requests, those that ended last are found, in their order, and no others are read."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.signals import post_init
from django.test import Client
from django.test.utils import CaptureQueriesContext

from engine.models import Event, Instance, OpenRequest, Step
from engine.steer.requests import answer
from studio.approvals import queries
from studio.approvals.closed import latest_closed
from studio.approvals.queries import _steps, box_of, entries
from tests.studio import factories

pytestmark = pytest.mark.django_db

ANSWER = {"refund": True, "amount": 3, "pay_by": "card"}


def _answered(*, is_recorded: bool, minutes: float) -> Step:
    step = factories.request(factories.instance("waiting"), started_at=factories.ago(days=9))
    answer(step.instance, step.seq, ANSWER, by="ada")
    event = Event.objects.filter(instance_id=step.instance_id)
    event.update(received_at=factories.ago(minutes=minutes))
    if is_recorded:
        event.update(state="consumed", consumed_generation=step.generation, consumed_by=step.seq)
        Step.objects.filter(pk=step.pk).update(output={"value": ANSWER})
        _ended(step, "complete", factories.ago(minutes=0))
    return step


def _ended(step: Step, status: str, at: datetime) -> None:
    error = factories.FAILURE if status == "errored" else None
    delivery = step.seq if status in ("complete", "errored") else None
    Step.objects.filter(pk=step.pk).update(status=status, error=error, delivery=delivery, finished_at=at)


@pytest.fixture
def closed() -> list[tuple[int, int, int]]:
    """The primary keys of requests that ended in each way, the latest first."""
    open_one = factories.request(factories.instance("waiting"))
    assert open_one.pk
    undone = factories.request(factories.instance("waiting"), started_at=factories.ago(minutes=6))
    Instance.objects.filter(key=undone.instance_id).update(ends_as="errored", rollback="running")
    left = factories.request(factories.instance("complete"), started_at=factories.ago(days=8))
    _ended(left, "cancelled", factories.ago(minutes=5))
    slow = factories.request(
        factories.instance("complete"), started_at=factories.ago(days=7), wake_at=factories.ago(minutes=3)
    )
    _ended(slow, "errored", factories.ago(minutes=1))
    found = [
        (1.5, _answered(is_recorded=True, minutes=1.5)),
        (2.0, _answered(is_recorded=False, minutes=2)),
        (3.0, slow),
        (4.0, factories.request(factories.instance("waiting"), wake_at=factories.ago(minutes=4))),
        (5.0, left),
        (6.0, undone),
        (7.0, _answered(is_recorded=True, minutes=7)),
    ]
    return [step.pk for _, step in found]


def test_they_come_in_the_order_in_which_they_ended(
    closed: list[tuple[int, int, int]], admin_user: User
) -> None:
    assert OpenRequest.objects.count() == 4
    assert latest_closed(100) == closed
    assert latest_closed(4) == closed[:4]
    found = entries(_steps(closed), admin_user)
    assert [one.ended_at for one in found] == sorted((one.ended_at for one in found), reverse=True)
    assert not any(one.is_open for one in found)


def test_what_is_not_shown_is_not_read(
    closed: list[tuple[int, int, int]], admin_user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "SHOWN", 3)
    read: list[object] = []

    def note(instance: Step, **_: object) -> None:
        read.append(instance)

    post_init.connect(note, sender=Step)
    try:
        box = box_of("done", admin_user)
    finally:
        post_init.disconnect(note, sender=Step)
    assert box.is_cut
    assert [one.step.pk for one in box.entries] == closed[:3]
    assert len(read) == 3


def test_the_page_counts_what_waits_for_a_person_once(operator: Client) -> None:
    factories.request(factories.instance("waiting"))
    with CaptureQueriesContext(connection) as asked:
        page = operator.get("/approvals/").content.decode()
    assert len([one for one in asked if "assignees && " in one["sql"] and "count(*)" in one["sql"]]) == 1
    assert 'Mine <span class="num muted">1</span>' in page
