"""The open requests are kept by the database itself."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction
from django.db.models.functions import Now

from engine.models import EndedRequest, OpenRequest, Step
from engine.steer.deletion import remove
from tests.integration.rows import row_of, step_of

pytestmark = pytest.mark.django_db


def request() -> Step:
    options = {"message": "May I?", "assignees": ["ana", "group:finance"]}
    return step_of(row_of(), kind="request", status="waiting", options=options)


def test_request_is_open_until_its_step_ends_whoever_ends_it() -> None:
    step = request()
    assert [one.assignees for one in OpenRequest.objects.all()] == [["ana", "group:finance"]]

    Step.objects.update(wake_at=Now())
    assert OpenRequest.objects.get().expires_at is not None

    Step.objects.filter(pk=step.pk).update(status="cancelled", finished_at=Now())
    assert not OpenRequest.objects.exists()
    step.refresh_from_db()
    assert [(one.seq, one.ended_at) for one in EndedRequest.objects.all()] == [(1, step.finished_at)]


def test_a_request_that_a_restart_keeps_has_ended_once() -> None:
    step = request()
    Step.objects.filter(pk=step.pk).update(status="cancelled", finished_at=Now())
    step_of(step.instance, kind="request", generation=2, status="cancelled", kept_from=1, finished_at=Now())
    assert [one.generation for one in EndedRequest.objects.all()] == [1]


def test_an_ended_request_goes_with_its_instance() -> None:
    step = request()
    Step.objects.filter(pk=step.pk).update(status="cancelled", finished_at=Now())
    remove([step.instance_id])
    assert not EndedRequest.objects.exists()


def test_complete_step_gets_its_turn_once() -> None:
    request()
    Step.objects.update(kind="do", status="complete", output=1, finished_at=Now())
    Step.objects.update(delivery=1)
    with pytest.raises(DatabaseError, match="finished step never changes"), transaction.atomic():
        Step.objects.update(delivery=2)
