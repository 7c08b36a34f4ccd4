"""Rows of django-q's schedules call what the settings allow, whoever wrote them."""

from __future__ import annotations

import base64
import logging
import os
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from django_q.models import OrmQ, Schedule, Task
from django_q.scheduler import scheduler
from django_q.signing import SignedPackage
from pytest_django.fixtures import Settings

from engine.worker.cluster.allowed_tasks import is_allowed
from tests.process import tasks

pytestmark = [pytest.mark.django_db(transaction=True)]

OURS = ["tests.process.tasks.*"]


def plan(func: str, **values: Any) -> None:
    due = timezone.now() - timedelta(seconds=1)
    Schedule.objects.create(name="nightly", func=func, schedule_type=Schedule.DAILY, next_run=due, **values)


def queued() -> list[str]:
    return [SignedPackage.loads(row.payload)["func"] for row in OrmQ.objects.order_by("pk")]


@pytest.mark.parametrize(
    ("func", "values"),
    [
        ("os.system", {"args": "'touch /tmp/owned'"}),
        ("tests.process.tasks.os.system", {"args": "'touch /tmp/owned'"}),
        ("tests.process.tasks.Path.unlink", {}),
        ("engine.worker.cluster.guardian.os._exit", {"args": "1"}),
        ("tests.process.clusters.Cluster", {}),
        ("builtins.eval", {}),
        ("tests.process.tasks.note", {"hook": "os.unlink"}),
        ("tests.process.tasks.note", {"kwargs": "{'q_options': {'hook': 'os.unlink'}}"}),
        ("tests.process.tasks.note", {"kwargs": "{'hook': 'os.unlink'}"}),
        ("tests.process.tasks.note", {"kwargs": "{'chain': [('os.system', ('touch /tmp/owned',))]}"}),
        ("tests.process.tasks.note", {"kwargs": "{'q_options': {'chain': ('os.abort',)}}"}),
        ("tests.process.tasks.note", {"kwargs": "{'chain': 'os.abort'}"}),
    ],
)
def test_a_schedule_of_what_is_not_allowed_is_refused_and_leaves_one_failure(
    settings: Settings, caplog: pytest.LogCaptureFixture, func: str, values: dict[str, str]
) -> None:
    settings.REPRISE = settings.REPRISE | {"TASKS": OURS}
    plan(func, **values)
    for _ in range(2):
        Schedule.objects.update(next_run=timezone.now() - timedelta(seconds=1))
        scheduler()

    assert queued() == []
    (failure,) = Task.objects.values("id", "success", "func", "group")
    assert failure == {
        "id": Schedule.objects.get().task,
        "success": False,
        "func": func,
        "group": "nightly",
    }
    said = [record for record in caplog.records if record.name == "engine.cluster"]
    assert [record.levelno for record in said] == [logging.ERROR] * 2
    assert 'The schedule "nightly" may not call ' in said[0].getMessage()
    assert 'REPRISE["TASKS"]' in said[0].getMessage()
    assert Schedule.objects.get().next_run > timezone.now()


def test_other_schedules_of_the_same_moment_run(settings: Settings) -> None:
    settings.REPRISE = settings.REPRISE | {"TASKS": OURS}
    for func in ("os.abort", "tests.process.tasks.note", "no.such.function", "engine.steer.retention.sweep"):
        plan(func)
    scheduler()
    assert sorted(queued()) == ["engine.steer.retention.sweep", "tests.process.tasks.note"]


@pytest.mark.parametrize(
    "func", ["tests.process.tasks.note", "tests.process.tasks.misspelt", "engine.steer.retention.sweep"]
)
def test_what_the_list_and_the_engine_hold_is_queued(settings: Settings, func: str) -> None:
    settings.REPRISE = settings.REPRISE | {"TASKS": OURS}
    plan(func)
    scheduler()
    assert queued() == [func]


def test_a_project_that_gives_no_list_schedules_whatever_it_likes(settings: Settings) -> None:
    settings.REPRISE = settings.REPRISE | {"TASKS": None}
    plan("os.getpid", hook="os.unlink")
    scheduler()
    assert queued() == ["os.getpid"]


def test_a_module_that_breaks_at_import_stops_nobody(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_tasks.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    settings.REPRISE = settings.REPRISE | {"TASKS": ["broken_tasks.*", *OURS]}
    plan("broken_tasks.work")
    plan("tests.process.tasks.note")
    scheduler()
    assert sorted(queued()) == ["broken_tasks.work", "tests.process.tasks.note"]


def test_a_planted_failure_is_overwritten_without_being_read(settings: Settings, tmp_path: Path) -> None:
    settings.REPRISE = settings.REPRISE | {"TASKS": OURS}
    plan("os.abort")
    scheduler()
    with connection.cursor() as cursor:
        planted = base64.b64encode(pickle.dumps(Planted(tmp_path / "owned"))).decode()
        cursor.execute("UPDATE django_q_task SET result = %s", [planted])
    Schedule.objects.update(next_run=timezone.now() - timedelta(seconds=1))
    scheduler()
    assert "may not call os.abort" in Task.objects.get().result
    assert list(tmp_path.iterdir()) == []


class Planted:
    """Make a directory when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_method_of_a_workflow_is_where_it_is_named() -> None:
    assert is_allowed("tests.sample.workflows.tick.start", ["tests.sample.*"])
    assert not is_allowed("tests.sample.workflows.tick.start", ["tests.other.*"])
    assert is_allowed(f"{tasks.__name__}.note", ["*"])
