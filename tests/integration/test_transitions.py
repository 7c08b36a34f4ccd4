"""Each change of an instance from outside writes the same, wherever it comes from."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from engine.models import Attempt, Instance, Step
from engine.steer import relations
from engine.worker.database import sql
from tests.integration.plants import child_of
from tests.integration.rows import NOW, attempt_of, leased, row_of, step_of

pytestmark = pytest.mark.django_db

WORKER_ID = 7
# The keys of a row, and the columns that say who changed it.
OF_THE_ROW = {"key", "id", "parent_key", "parent_generation", "parent_step", "is_tied", "depth", "created_at"}


def ask(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def with_steps(instance: Instance) -> Instance:
    """Give it a step of each kind that a transition treats in its own way, and what its worker left open."""
    later = timezone.now() + timedelta(hours=1)
    step_of(instance, 1, status="complete", finished_at=NOW, delivery=1, output=1, attempts=1)
    attempt_of(instance, 1, status="complete", finished_at=NOW)
    step_of(instance, 2, attempts=1)
    attempt_of(instance, 2, quarantined=True)
    step_of(instance, 3, kind="sleep", status="waiting", wake_at=later)
    step_of(instance, 4, kind="sleep", status="waiting", wake_at=later, wake_is_fixed=True)
    step_of(instance, 5, kind="event", status="waiting")
    return instance


def written(instance: Instance) -> list[dict[str, Any]]:
    """Read the row, its steps and its attempts. Of a time it matters whether it is there, and whether it has moved."""
    rows: list[Any] = [
        *Instance.objects.filter(key=instance.key).values(),
        *Step.objects.filter(instance=instance).order_by("seq").values(),
        *Attempt.objects.filter(instance=instance).order_by("step_seq").values(),
    ]
    return [
        {name: _rounded(value) for name, value in row.items() if name not in OF_THE_ROW | {"instance_id"}}
        for row in rows
    ]


def _rounded(value: Any) -> Any:
    return round((value - timezone.now()) / timedelta(minutes=10)) if isinstance(value, datetime) else value


def child_in_hand(seq: int, *, is_held: bool) -> Instance:
    parent = Instance.objects.filter(id="parent").first() or row_of(
        id="parent", status="terminated", finished_at=NOW, wake_at=None, notify_pending=True
    )
    step_of(parent, seq, kind="child", status="cancelled", finished_at=NOW)
    child = with_steps(child_of(parent, seq))
    return leased(child) if is_held else child


@pytest.mark.parametrize("is_held", [True, False])
def test_who_is_terminated_by_its_parents_end_is_as_one_that_somebody_terminates(is_held: bool) -> None:
    by_hand, orphan = child_in_hand(1, is_held=is_held), child_in_hand(2, is_held=is_held)
    by_hand.terminate()
    relations.settle(Instance.objects.get(id="parent").key)
    assert orphan.refresh().status == "terminated"
    assert written(orphan) == written(by_hand)
    lost = 0 if is_held else 1
    ended = "cancelled" if is_held else "lost"
    assert [step.lost for step in Step.objects.filter(instance=orphan).order_by("seq")] == [0, lost, 0, 0, 0]
    assert Attempt.objects.get(instance=orphan, step_seq=2).status == ended


def test_what_goes_on_with_its_old_code_is_as_what_somebody_resumes() -> None:
    paused_at = timezone.now() - timedelta(hours=2)
    values: dict[str, Any] = {"status": "paused", "paused_at": paused_at, "wake_at": None, "code": "c"}
    reason = {"type": "CodeChangedError"}
    by_hand, by_worker = (with_steps(row_of(id=name, pause_reason=reason, **values)) for name in ("a", "b"))
    by_hand.resume()
    ask(sql.GO_BACK, workflows=["tick"], codes=["c"], limit=10)
    assert (by_worker.refresh().status, by_worker.pause_reason) == ("queued", None)
    assert written(by_worker) == written(by_hand)


def _reap(instance: Instance) -> None:
    ask(sql.REAP, lease=30, alive=[], over="[]")


def _let_go(instance: Instance) -> None:
    ask(
        sql.LET_GO,
        worker_id=WORKER_ID,
        strays=json.dumps([{"key": instance.key, "fence": 0, "reason": None}]),
    )


def _give_back(instance: Instance) -> None:
    ask(
        sql.GIVE_BACK,
        worker_id=WORKER_ID,
        claims=json.dumps([{"key": instance.key, "fence": 0, "due_us": 0}]),
    )


@pytest.mark.parametrize("release", [_reap, _let_go, _give_back])
def test_what_a_worker_leaves_while_it_is_to_pause_is_as_what_somebody_pauses(
    release: Callable[[Instance], None],
) -> None:
    by_hand, by_worker = with_steps(row_of(id="by-hand")), with_steps(row_of(id="by-worker"))
    leased(by_worker, status="waiting_for_pause", worker_id=WORKER_ID)
    by_hand.pause()
    release(by_worker)
    assert by_worker.refresh().status == "paused"
    # No worker died of it, except where it is reaped.
    if release is not _reap:
        Attempt.objects.filter(instance=by_hand, status="lost").update(quarantined=False)
    before, after = written(by_hand), written(by_worker)
    if release is _reap:  # it may have killed its worker
        assert by_worker.quarantined
        after[0]["quarantined"] = False
    assert after == before
