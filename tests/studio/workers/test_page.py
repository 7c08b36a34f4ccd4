"""The page of workers and queues: what it shows of rows that clusters and instances have written."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from engine import pauses
from engine.models import Instance, Worker
from studio.display.rendering import render_to_string
from studio.workers import queries
from tests.studio import factories
from tests.studio.display.test_escaping import EVIL, assert_is_text

pytestmark = pytest.mark.django_db


def page_of(client: Client) -> str:
    answer = client.get("/workers/")
    assert answer.status_code == 200
    return answer.content.decode()


def text(html: str) -> str:
    """Return what a part of a page says, without markup."""
    return " ".join(re.sub(r"<[^>]+>", " ", re.sub(r"<svg.*?</svg>", "", html, flags=re.DOTALL)).split())


def row_of(page: str, id: str) -> str:
    return page.split(f'id="{id}"')[1].split("</tr>")[0]


def headline(page: str) -> str:
    return text(page.split("<h1>")[1].split("</h1>")[0])


def section(page: str, id: str) -> str:
    return page.split(f'id="{id}"')[1].split("</section>")[0]


def cluster(host: str = "app-1", *, count: int = 1, **given: Any) -> list[Worker]:
    """Make a cluster with its workers on a host."""
    names = given.pop("workflows", ["orders"])
    of_all = {key: given[key] for key in ("code", "started_at", "seen_at") if key in given}
    row = factories.worker(names, role="cluster", name=f"{host}:100", cluster=host, slots=64, **of_all)
    row.cluster_id = row.worker_id
    row.save()
    own = {"cluster": host, "cluster_id": row.worker_id}
    return [factories.worker(names, name=f"{host}:{200 + n}", **own, **given) for n in range(count)]


def running_in(worker: Worker, **given: Any) -> Instance:
    return factories.instance("running", owner=worker.worker_id, **given)


def test_without_a_worker_it_says_so_and_how_to_start_one(viewer: Client) -> None:
    factories.instance("queued")
    page = page_of(viewer)
    assert headline(page) == "No worker is running, so no workflow runs. 1 instance waits."
    assert "python manage.py workers" in section(page, "workers-table")
    assert "no worker serves it" in row_of(page, "queue-orders")


def test_a_new_cluster_without_workers_is_starting(viewer: Client) -> None:
    now = timezone.now()
    factories.worker(
        ["orders"], role="cluster", name="app-1:100", started_at=now - timedelta(seconds=3), seen_at=now
    )
    page = page_of(viewer)
    assert headline(page) == "Workers are starting."
    assert "manage.py workers" not in page


def test_workers_are_listed_by_cluster_with_what_they_run(viewer: Client) -> None:
    one, other = cluster("app-1", count=2, slots=4, held=1)
    (third,) = cluster("batch-1", slots=64, held=0, workflows=["orders", "billing"])
    running_in(one, id="order-1")
    running_in(other, id="order-2")
    page = page_of(viewer)
    assert headline(page) == "All 3 workers are up; 2 of 72 slots are busy."
    groups = re.findall(r'<tr class="group">.*?</tr>', page, re.DOTALL)
    assert [text(group) for group in groups] == [
        "app-1 2 workers · 2 of 8 slots busy · 1 workflow Drain…",
        "batch-1 1 worker · 0 of 64 slots busy · 2 workflows Drain…",
    ]
    line = row_of(page, f"worker-{one.pk}")
    assert '/workflows/orders/instances/order-1/"' in line
    assert "order-2" not in line
    assert re.findall(r"cell (busy|free|long)", line) == ["busy", "free", "free", "free"]
    assert "gauge" not in line
    many = row_of(page, f"worker-{third.pk}")
    assert 'viewBox="0 0 64 1"' in many
    assert 'class="cell ' not in many


def test_it_names_two_instances_and_counts_the_rest(viewer: Client) -> None:
    (worker,) = cluster(slots=8, held=5)
    for number in range(5):
        running_in(worker, id=f"order-{number}")
    line = row_of(page_of(viewer), f"worker-{worker.pk}")
    assert re.findall(r"instances/(order-\d)/", line) == ["order-0", "order-1"]
    assert "· 3 more" in text(line)


def test_more_instances_than_slots_fill_the_slots(viewer: Client) -> None:
    """Instances that only await take no slot."""
    (worker,) = cluster(slots=2, held=7)
    line = row_of(page_of(viewer), f"worker-{worker.pk}")
    assert "2 of 2" in text(line)
    assert re.findall(r"cell (busy|free|long)", line) == ["busy", "busy"]


@pytest.mark.parametrize(
    ("seconds", "state", "look"), [(2, "up", "complete"), (13, "late", "retrying"), (25, "silent", "errored")]
)
def test_a_missed_heartbeat_is_marked(viewer: Client, seconds: int, state: str, look: str) -> None:
    cluster("well")
    (worker,) = cluster("app-2", seen_at=factories.ago(seconds=seconds))
    page = page_of(viewer)
    line = row_of(page, f"worker-{worker.pk}")
    assert f"chip s-{look}" in line
    assert f" {state} " in f" {text(line)} "


def test_a_late_heartbeat_is_named_below_the_headline(viewer: Client) -> None:
    cluster("well")
    (worker,) = cluster("app-2", seen_at=factories.ago(seconds=13))
    page = page_of(viewer)
    assert headline(page) == "All 2 workers are up, and nothing waits."
    assert f'<a href="#worker-{worker.pk}">1 heartbeat</a> is late' in page


def test_silent_workers_are_the_headline(viewer: Client) -> None:
    cluster("app-1", count=2, seen_at=factories.ago(seconds=30))
    assert headline(page_of(viewer)) == "All 2 workers are silent."
    Worker.objects.all().delete()
    cluster("app-1", seen_at=factories.ago(seconds=30))
    cluster("app-2")
    assert headline(page_of(viewer)) == "1 of 2 workers is silent."


def test_rows_of_workers_that_were_killed_long_ago_are_left_out(viewer: Client) -> None:
    cluster("app-1", seen_at=factories.ago(hours=2), started_at=factories.ago(hours=9))
    assert headline(page_of(viewer)) == "No worker is running, so no workflow runs."


def test_full_slots_are_the_headline_if_something_waits(viewer: Client) -> None:
    (worker,) = cluster(slots=1, held=1)
    running_in(worker)
    assert headline(page_of(viewer)) == "The only worker is up; 1 of 1 slots is busy."
    factories.instance("queued", wake_at=factories.ago(seconds=9))
    assert headline(page_of(viewer)) == "The only slot is busy, and 1 instance waits."


def test_a_workflow_that_no_worker_serves_is_the_headline(viewer: Client) -> None:
    cluster(workflows=["billing"])
    factories.instance("queued")
    page = page_of(viewer)
    assert headline(page) == "No worker serves orders, so 1 instance waits."
    assert "no worker serves it" in row_of(page, "queue-orders")


def test_those_that_wait_though_slots_are_free_are_counted(viewer: Client) -> None:
    cluster(slots=8)
    factories.instance("queued", wake_at=factories.ago(seconds=125))
    assert headline(page_of(viewer)).startswith(
        "0 of 8 slots are busy, but 1 instance waits, the oldest for 2 m 0"
    )


def test_what_the_pause_of_a_workflow_holds_is_no_lack_of_workers(viewer: Client) -> None:
    cluster(slots=8)
    for _ in range(2):
        factories.instance("queued", wake_at=factories.ago(minutes=9))
    factories.instance("paused", by="li")
    pauses.pause("orders")
    page = page_of(viewer)
    assert headline(page) == "Nothing waits for a worker; 3 instances are held by a pause."
    line = row_of(page, "queue-orders")
    assert text(line.split("held")[1].split("</td>")[0]).endswith("3")
    assert "/instances/?query=workflow:orders+status:open" in line
    assert "held by a pause" in line


def test_what_a_pause_holds_is_no_lack_of_workers(viewer: Client) -> None:
    cluster(slots=8)
    for _ in range(3):
        factories.instance("paused", by="li")
    page = page_of(viewer)
    assert headline(page) == "Nothing waits for a worker; 3 instances are held by a pause."
    line = row_of(page, "queue-orders")
    assert text(line.split("held")[1].split("</td>")[0]).endswith("3")
    assert "/instances/?query=workflow:orders+status:paused" in line


def test_the_oldest_queue_is_first_and_amber_after_five_minutes(viewer: Client) -> None:
    cluster(workflows=["orders", "billing", "mail"], slots=1)
    factories.instance("queued", workflow="mail", wake_at=factories.ago(seconds=3))
    factories.instance(
        "queued", workflow="orders", wake_at=factories.ago(minutes=6), created_at=factories.ago(minutes=6)
    )
    factories.instance("paused", workflow="billing")
    page = page_of(viewer)
    assert re.findall(r'id="queue-([\w-]+)"', page)[:3] == ["orders", "mail", "billing"]
    assert 'class="warn s-retrying"' in row_of(page, "queue-orders").split("oldest")[1].split("</td>")[0]
    assert "warn" not in row_of(page, "queue-mail").split("oldest")[1].split("</td>")[0]


def test_a_queue_that_grows_does_not_catch_up(viewer: Client) -> None:
    cluster(slots=1)
    for number in range(4):
        factories.instance("queued", wake_at=factories.ago(seconds=number + 1))
    assert "does not catch up" in row_of(page_of(viewer), "queue-orders")


def test_a_queue_that_shrinks_says_when_it_is_empty(viewer: Client) -> None:
    cluster(slots=1)
    old = factories.ago(minutes=20)
    for _ in range(4):
        factories.instance("queued", created_at=old, wake_at=old)
    for _ in range(10):
        factories.instance("complete", created_at=old, started_at=factories.ago(seconds=30))
    # Ten in five minutes begin, none comes, and four wait.
    assert "0 2 about 2 m 00 s" in text(row_of(page_of(viewer), "queue-orders"))


def test_the_wait_is_the_95th_percentile_of_those_that_began(viewer: Client) -> None:
    cluster()
    for number in range(19):
        at = factories.ago(seconds=40)
        factories.instance("complete", created_at=at, started_at=at + timedelta(milliseconds=100 + number))
    factories.instance("complete", created_at=factories.ago(minutes=50), started_at=factories.ago(minutes=40))
    figure = text(page_of(viewer).split("workers-figures")[1].split("</div>")[0])
    assert "117 ms last 5 minutes" in figure


def test_a_step_that_takes_far_longer_than_usual_is_orange(viewer: Client) -> None:
    for number in range(5):
        done = factories.instance("complete", started_at=factories.ago(seconds=90))
        at = factories.ago(seconds=80)
        step = factories.step(done, "charge", started_at=at, finished_at=at + timedelta(seconds=2 + number))
        factories.attempt(step, started_at=at, finished_at=step.finished_at)
    (worker,) = cluster(slots=4, held=2)
    slow, quick = (
        running_in(worker, id=name, started_at=factories.ago(seconds=60)) for name in ("slow", "quick")
    )
    for of, seconds in ((slow, 55), (quick, 5)):
        factories.attempt(
            factories.step(of, "charge", "running", started_at=factories.ago(seconds=seconds)), "running"
        )
    line = row_of(page_of(viewer), f"worker-{worker.pk}")
    assert re.findall(r"cell (busy|free|long)", line) == ["long", "busy", "free", "free"]
    assert re.findall(r"instances/(\w+)/", line) == ["slow", "quick"]
    assert 'title="Step charge"' in line


@pytest.mark.parametrize("evil", EVIL, ids=[evil[:16] for evil in EVIL])
def test_names_from_elsewhere_are_text(viewer: Client, evil: str) -> None:
    cluster(f"{evil[:80].replace(':', ' ')}")
    assert_is_text(page_of(viewer), evil)


def test_a_section_that_cannot_be_read_fails_alone(viewer: Client) -> None:
    cluster()
    with connection.cursor() as cursor:  # as if a migration had not been applied
        cursor.execute("ALTER TABLE engine_instance RENAME COLUMN wake_at TO due_at")
        page = page_of(viewer)
        cursor.execute("ALTER TABLE engine_instance RENAME COLUMN due_at TO wake_at")
    failed = text(section(page, "workers-queues"))
    assert re.search(r"Could not read the queues\. Request [0-9a-f]{8} \. Try again", failed)
    assert "app-1:200" in section(page, "workers-table")
    assert headline(page) == "The only worker is up; 0 of 64 slots are busy."


def test_it_reads_a_bounded_number_of_workers(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MOST_WORKERS", 3)
    cluster(count=5)
    assert page_of(viewer).count('id="worker-') == 2


def test_a_page_that_is_open_gets_the_same_sections(viewer: Client) -> None:
    (worker,) = cluster()
    answer = viewer.get("/_f/live/", {"topic": "workers"})
    assert answer.status_code == 200
    sent = answer.content.decode()
    assert re.findall(r'hx-target="#(workers-\w+)"', sent) == [
        "workers-head",
        "workers-figures",
        "workers-table",
        "workers-queues",
    ]
    assert f'id="worker-{worker.pk}"' in sent


def test_an_instance_of_a_workflow_that_one_may_not_see_stays_unnamed() -> None:
    (worker,) = cluster(slots=4, held=2, workflows=["orders", "billing"])
    running_in(worker, id="secret-1", workflow="billing")
    running_in(worker, id="order-1")
    found, _ = queries.read_clusters(frozenset({"orders"}))
    (line,) = found[0].lines
    assert [held.instance and held.instance.id for held in line.runs] == ["order-1", None]
    drawn = render_to_string("studio/workers/worker.html", {"line": line, "process": line.process})
    assert "another workflow" in drawn
    assert "secret-1" not in drawn


def test_a_long_step_of_a_workflow_that_one_may_not_see_stays_unnamed() -> None:
    for _ in range(5):
        done = factories.instance("complete", workflow="billing", started_at=factories.ago(seconds=90))
        at = factories.ago(seconds=80)
        ended = at + timedelta(seconds=2)
        factories.attempt(
            factories.step(done, "dun", started_at=at, finished_at=ended), started_at=at, finished_at=ended
        )
    (worker,) = cluster(slots=4, held=1, workflows=["billing"])
    slow = running_in(worker, workflow="billing", started_at=factories.ago(seconds=60))
    factories.attempt(factories.step(slow, "dun", "running", started_at=factories.ago(seconds=55)), "running")
    names = []
    for visible in ("billing", "orders"):
        found, _ = queries.read_clusters(frozenset({visible}))
        (held,) = found[0].lines[0].runs
        names.append(held.long and held.long.name)
    assert names == ["dun", None]


def test_queues_show_what_started_in_the_last_hour(viewer: Client) -> None:
    for number in range(16):
        factories.instance("queued", id=f"order-{number}")
    row = row_of(page_of(viewer), "queue-orders")
    assert "16 started in the last hour, at most 16 in 3 minutes." in row
    (bars,) = re.findall(r'<path d="([^"]*)"/>', row)
    assert re.findall(r"v-(\d+)", bars) == ["26"]


def test_a_queue_in_which_nothing_started_says_so(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    factories.instance("queued")
    monkeypatch.setattr(queries.last_hour, "started", lambda names: dict.fromkeys(names, (0,) * 20))
    row = row_of(page_of(viewer), "queue-orders")
    assert "None started in the last hour." in row
    assert row.count("v-2h") == 20


def test_a_paused_workflow_is_resumed_from_its_queue(operator: Client, viewer: Client) -> None:
    factories.instance("queued")
    assert "Resume…" not in row_of(page_of(operator), "queue-orders")
    pauses.pause("orders", by="zoe", reason="The bank is down.")
    row = row_of(page_of(operator), "queue-orders")
    assert "orders paused by zoe 0" in text(row)
    (address,) = re.findall(r'<a class="button" href="([^"]+)">Resume…', row)
    asked = operator.get(address.replace("&amp;", "&"))
    assert "Resume orders" in asked.content.decode()
    assert 'href="/workers/"' in asked.content.decode()
    assert "Resume…" not in row_of(page_of(viewer), "queue-orders")
