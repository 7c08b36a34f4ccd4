"""Workflows of Reprise itself: lists, counts and searches have nothing of them unless they are asked for."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from engine import WorkflowStep, bulk, failures, workflow
from engine.dry_run.reading import open_instances
from engine.models import Instance
from engine.status import health, search
from engine.status.load import load
from engine.status.searching.counting import count_by_status, count_newer
from engine.status.searching.searching import search as find
from engine.values.query.order import Sort
from engine.values.query.parsing import parse

pytestmark = [pytest.mark.usefixtures("engine_db", "own_registry")]


@pytest.fixture
def job() -> Instance:
    """The instance of a bulk job, which is queued, beside one of a user's workflow."""

    @workflow("of-a-user")
    async def of_a_user(step: WorkflowStep) -> None:
        await step.listen("go")

    of_a_user.start(id="mine")
    started = bulk.start("pause", "workflow:of-a-user")
    return Instance.objects.get(workflow="reprise.bulk", id=started.id)


def found(text: str, **options: Any) -> list[str]:
    keys = find(parse(text), workflows=options.pop("workflows", None), **options).keys
    return [one.workflow for one in Instance.objects.filter(key__in=keys)]


@pytest.mark.parametrize(
    "text", ["", "status:open", "status:queued", "-status:complete", "params.job:*", "system:no"]
)
def test_no_search_finds_them(job: Instance, text: str) -> None:
    assert "reprise.bulk" not in found(text)


def test_no_search_finds_them_by_id_or_name(job: Instance) -> None:
    assert found(job.id) == found(f"id:{job.id}") == found("workflow:reprise.bulk") == []
    assert found("workflow:reprise*") == found("by:ana -status:complete") == []
    assert found("", sort=Sort.of("duration")) == ["of-a-user"]


@pytest.mark.parametrize(
    "text", ["system:yes", "-system:no", "system:yes status:queued", "system:yes workflow:reprise*"]
)
def test_they_are_found_if_asked_for(job: Instance, text: str) -> None:
    assert found(text) == ["reprise.bulk"]
    assert found(f"{text} id:{job.id}") == ["reprise.bulk"]
    assert found(text, sort=Sort.of("duration")) == ["reprise.bulk"]
    assert found(text, workflows=["of-a-user"]) == []  # not by those who may not see them


def test_no_count_has_them(job: Instance) -> None:
    assert "reprise.bulk" not in search.workflow_names()
    assert search.workflow_names(of_system=True) == ["reprise.bulk"]
    assert search.last_start_at() == Instance.objects.get(id="mine").created_at
    assert count_newer(parse(""), 0, workflows=None) == 1
    assert count_by_status(parse("status:queued"), workflows=None) == {"queued": 1}
    assert count_by_status(parse("system:yes"), workflows=None) == {"queued": 1}
    facts = health.read(timeout=timedelta(seconds=5)).facts
    assert facts is not None
    assert facts.due == 1
    assert load(search.workflow_names()).waiting == 1
    assert failures.count_open() == 0


def test_a_dry_run_and_pause_all_leave_them_alone(job: Instance) -> None:
    assert [one.claimed.workflow for one in open_instances(None)] == ["of-a-user"]
    call_command("workflow", "pause", "--all-open", "--yes", "--reason", "A test.", stdout=StringIO())
    assert job.refresh().status == "queued"
    assert Instance.objects.get(id="mine").status == "paused"


def test_pages_show_one_only_where_it_is_asked_for(job: Instance) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    for page in ("home", "instances", "workflows", "errors", "workers"):
        assert job.id not in client.get(reverse(f"studio:{page}")).content.decode(), page
    listed = client.get(reverse("studio:instances"), {"query": "system:yes"})
    assert job.id in listed.content.decode()
    own = client.get(reverse("studio:instance", args=["reprise.bulk", job.id]))
    assert own.status_code == 200
