"""Home: a sentence and a list about all instances, however many there are."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from engine.models import Instance
from engine.status.search import workflow_names
from studio.home import attention
from tests.studio import factories

pytestmark = pytest.mark.django_db

CODE_CHANGED = {"type": "CodeChangedError", "message": "The code has changed.", "details": {}}


def sentence(client: Client) -> str:
    """Return the sentence about the state of everything."""
    return text_of(client, r'<p id="health"[^>]*>(.*?)</p>')


def kinds(client: Client) -> list[tuple[str, str]]:
    """Return what needs attention, with the counts."""
    part = re.search(r'<section class="card" id="attention".*?</p>', home(client), re.DOTALL)
    assert part is not None
    return re.findall(r"</svg>([^<]+) <span class=\"num\">([^<]+)</span>", part[0])


def listed(client: Client) -> list[str]:
    """Return the IDs in the list of what needs attention."""
    part = re.search(r'<section class="card" id="attention".*?</section>', home(client), re.DOTALL)
    assert part is not None
    return re.findall(r'<td class="id"><a [^>]*>([^<]+)</a>', part[0])


def home(client: Client) -> str:
    return client.get("/").content.decode()


def text_of(client: Client, pattern: str) -> str:
    found = re.search(pattern, home(client), re.DOTALL)
    assert found is not None
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", found[1])).split())


def failed(count: int, *, workflows: int = 1, **given: Any) -> None:
    now = timezone.now()
    times = {"created_at": now, "started_at": now}
    Instance.objects.bulk_create(
        Instance(
            **{
                "workflow": f"flow-{n % workflows}",
                "id": f"failed-{n}",
                "status": "errored",
                "params": {},
                "error": factories.FAILURE,
                "finished_at": now - timedelta(seconds=count - n),
                **times,
                **given,
            }
        )
        for n in range(count)
    )


def test_the_sentence_says_that_nothing_needs_anybody(operator: Client) -> None:
    factories.workers(["orders"], count=3, held=4)
    assert sentence(operator) == "Nothing needs you · 3 workers OK, 12 of 192 slots busy."
    assert listed(operator) == []


def test_the_sentence_counts_all_failures_and_not_the_newest_ten(operator: Client) -> None:
    failed(39, workflows=28)
    factories.instance("paused", pause_reason=CODE_CHANGED)
    factories.retrying()
    assert sentence(operator) == (
        "28 workflows had failures in the last 24 h · 1 paused by the engine · 1 retrying · "
        "no worker is running, so no workflow runs."
    )
    assert kinds(operator) == [
        ("paused by the engine", "1"),
        ("retrying", "1"),
        ("failed in the last 24 h", "39"),
    ]


def test_nothing_that_is_more_urgent_vanishes_behind_newer_failures(operator: Client) -> None:
    stuck = factories.instance("paused", pause_reason=CODE_CHANGED)
    again = factories.retrying()
    asks = factories.instance("waiting")
    factories.request(asks, wake_at=factories.ago(hours=-1))
    failed(500)
    found = listed(operator)
    assert found[:3] == [stuck.id, asks.id, again.id]
    assert found[3:] == [f"failed-{n}" for n in range(499, 490, -1)]
    assert "Only some are listed: failed in the last 24 h." in " ".join(home(operator).split())


def test_what_asks_twice_or_for_two_reasons_is_not_said_to_be_cut(operator: Client) -> None:
    asks = factories.retrying()
    for name in ("first", "second"):
        factories.request(asks, name=name)
    assert listed(operator) == [asks.id]
    assert "Only some are listed" not in home(operator)


def test_requests_of_more_instances_than_are_listed_are_said_to_be_cut(operator: Client) -> None:
    for _ in range(13):
        factories.request(factories.instance("waiting"))
    assert "Only some are listed: waiting for approval." in " ".join(home(operator).split())


def test_each_kind_leads_to_all_of_it(operator: Client) -> None:
    failed(20)
    factories.instance("paused", pause_reason=CODE_CHANGED)
    factories.retrying()
    factories.request(factories.instance("waiting"))
    page = home(operator)
    for address in (
        "/instances/?query=status:paused",
        "/approvals/?box=open",
        "/instances/?query=status:retrying",
        "/instances/?query=status:errored",
    ):
        assert page.count(f'href="{address}"') == 2
        assert operator.get(address).status_code == 200


def test_a_failure_counts_by_its_end_and_for_a_day(operator: Client) -> None:
    """One that ran for a week and failed just now is older, by its key, than all others."""
    now = timezone.now()
    failed(1, created_at=now - timedelta(days=7), started_at=now - timedelta(days=7), finished_at=now)
    failed(30, workflow="long-ago", finished_at=now - timedelta(hours=25))
    assert kinds(operator) == [("failed in the last 24 h", "1")]
    assert sentence(operator).startswith("1 workflow had failures in the last 24 h · ")
    assert listed(operator) == ["failed-0"]


def test_what_a_person_has_paused_needs_nobody(operator: Client) -> None:
    factories.instance("paused")
    factories.instance("paused", error=factories.FAILURE, rollback="running", ends_as="errored")
    assert sentence(operator).startswith("Nothing needs you")


def test_a_count_that_was_stopped_says_so(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "CAP", 5)
    failed(12, workflows=2)
    factories.instance("errored")
    assert kinds(operator) == [("failed in the last 24 h", "9+")]


def test_all_slots_busy_is_said_of_workers_that_hold_as_much_as_they_may(operator: Client) -> None:
    factories.workers(["orders"], count=2, slots=8, held=8)
    assert sentence(operator) == "Nothing needs you · 2 workers OK, all 16 slots busy."
    factories.worker(["other"], slots=8, held=7)
    assert sentence(operator) == "Nothing needs you · 3 workers OK, 23 of 24 slots busy."


def test_a_worker_that_holds_more_than_its_slots_has_no_more_busy_than_it_has(operator: Client) -> None:
    """Those that only wait take no slot: it may hold eight times as many."""
    factories.worker(["orders"], slots=8, held=60)
    factories.worker(["orders"], slots=8, held=3)
    assert sentence(operator) == "Nothing needs you · 2 workers OK, 11 of 16 slots busy."


def test_a_worker_that_was_not_seen_for_20_s_is_none(operator: Client) -> None:
    factories.workers(["orders"], count=2, held=3, seen_at=factories.ago(seconds=21))
    assert sentence(operator) == "Nothing needs you · no worker is running, so no workflow runs."
    factories.worker(["orders"], role="cluster", started_at=factories.ago(seconds=50))
    assert sentence(operator) == "Nothing needs you · workers are starting."


def test_a_cluster_that_is_long_without_a_worker_is_not_said_to_start_them(operator: Client) -> None:
    """Its shifts cannot start, or it is draining."""
    factories.worker(["orders"], role="cluster", started_at=factories.ago(seconds=70))
    factories.instance(workflow="orders")
    assert sentence(operator) == "Nothing needs you · no worker is running, so no workflow runs."
    assert "no worker</span>" in home(operator)


def test_home_stays_quick_beside_many_instances(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    """Whatever there is, each answer comes from an index that holds little else."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance"
            " (workflow, id, status, waiting_for, params, wake_at, finished_at, output, error)"
            " SELECT 'flow-' || n % 3, 'b-' || n,"
            " CASE n % 10 WHEN 0 THEN 'queued' WHEN 1 THEN 'errored' ELSE 'complete' END, '', '{}',"
            " CASE WHEN n % 10 = 0 THEN now() END,"
            " CASE WHEN n % 10 > 0 THEN now() - n * interval '1 hour' END,"
            " CASE WHEN n % 10 > 1 THEN '1'::json END, CASE WHEN n % 10 = 1 THEN '{\"type\": \"Odd\"}'::json END"
            " FROM generate_series(1, 20000) n"
        )
    failed(50)
    factories.retrying()
    factories.instance("paused", pause_reason=CODE_CHANGED)
    names = workflow_names()
    values = {"names": names, "cap": attention.CAP, "shown": attention.SHOWN}
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE engine_instance")
        for query in (attention._COUNTS, attention._ROWS):
            cursor.execute(f"EXPLAIN {query}", values)
            plan = "\n".join(row[0] for row in cursor.fetchall())
            assert "engine_instance_failed" in plan
            assert "Seq Scan on engine_instance" not in plan
            assert "engine_instance_pkey" not in plan
    with django_assert_max_num_queries(4):
        assert sum(kind.count for kind in attention.attention(names).kinds) == 55
