"""The database of the cases refuses what `engine.values.states` does not name, so the cases check its tables."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from engine import workflows
from engine.models import Attempt, Instance, Step
from tests.guards import GUARDED

REFUSED = r"engine\.values\.states knows no such (change|beginning)"


def test_every_change_of_a_status_is_held_to_the_tables() -> None:
    now = timezone.now()
    instance = Instance.objects.create(workflow="tick", id="a", params={}, wake_at=now)
    where = {"instance": instance, "generation": 1, "started_at": now}
    Step.objects.create(**where, seq=1, kind="do", name="a", count=1, status="running")
    Attempt.objects.create(**where, step_seq=1, number=1, status="running")
    refused = [
        lambda: Instance.objects.update(status="waiting", waiting_for="event"),
        lambda: Attempt.objects.create(**where, step_seq=1, number=2, status="lost", finished_at=now),
        lambda: Instance.objects.create(
            workflow="tick", id="b", params={}, status="waiting", waiting_for="event"
        ),
        lambda: Attempt.objects.update(status="running", finished_at=None),
    ]
    Attempt.objects.update(status="lost", finished_at=now)
    for change in refused:
        with pytest.raises(IntegrityError, match=REFUSED), transaction.atomic():
            change()
    assert set(GUARDED) == {model._meta.db_table for model in (Instance, Step, Attempt)}


def test_what_the_tables_name_is_done() -> None:
    instance = workflows["tick"].start()
    assert [instance.pause().status, instance.resume().status, instance.terminate().status] == [
        "paused",
        "queued",
        "terminated",
    ]
    assert instance.restart().status == "queued"
