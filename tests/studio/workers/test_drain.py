"""Draining and resuming workers, as a person does it: a page that says what it does, and plain forms."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from django.test import Client

from engine.models import Audit, Worker
from tests.studio import factories
from tests.studio.workers.test_page import cluster, headline, page_of, row_of, running_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(signed_in: Callable[..., Client]) -> Client:
    return signed_in("admin", "ada")


def ask(client: Client, worker: Worker) -> str:
    answer = client.get(f"/workers/{worker.pk}/drain/")
    assert answer.status_code == 200
    return answer.content.decode()


def act(client: Client, worker: Worker, action: str, **given: Any) -> tuple[int, str]:
    answer = client.post(f"/workers/{worker.pk}/{action}/", given)
    return answer.status_code, answer.content.decode()


def test_it_is_drained_with_a_reason_and_resumed(admin: Client) -> None:
    worker, _ = cluster(count=2, slots=4, held=1)
    running_in(worker, id="order-1")
    assert act(admin, worker, "drain", reason="new kernel") == (302, "")
    page = page_of(admin)
    assert "it finishes what it runs and begins nothing." in page
    line = row_of(page, f"worker-{worker.pk}")
    assert "finishes 1, drained by ada: new kernel" in text(line)
    assert "instances/order-1/" in line
    assert f'<a href="#worker-{worker.pk}">1 worker</a> is draining' in page
    assert text(line).endswith(f"Resume {worker.name}")
    code, again = act(admin, worker, "drain", reason="twice")
    assert code == 409
    assert f"{worker.name} is already draining by ada." in again
    assert act(admin, worker, "resume") == (302, "")
    line = row_of(page_of(admin), f"worker-{worker.pk}")
    assert text(line).endswith(f"Drain… {worker.name}")
    assert [(one.verb, one.actor, one.outcome, one.reason) for one in Audit.objects.order_by("key")] == [
        ("worker-drain", "ada", "done", "new kernel"),
        ("worker-resume", "ada", "done", ""),
    ]


def test_the_page_says_what_it_does_and_who_else_serves_the_workflows(admin: Client) -> None:
    (worker,) = cluster("app-1", workflows=["process-order", "nap"])
    (other,) = cluster("app-2", workflows=["nap"])
    for name in ("process-order", "nap"):
        factories.instance("queued", workflow=name)
    asked = text(ask(admin, worker).split("<main")[1])
    assert "No other worker serves process-order . Instances wait until one does." in asked
    assert "Does not cancel a step or use up an attempt." in asked
    assert "No other worker serves" not in ask(admin, other)


def test_a_whole_cluster_is_drained_and_resumed(admin: Client) -> None:
    one, other = cluster(count=2, workflows=["process-order"])
    row = Worker.objects.get(role="cluster")
    asked = text(ask(admin, row))
    assert "All workers of this cluster, and those that replace them, begin nothing new." in asked
    assert "No other worker serves" in asked
    assert act(admin, row, "drain")[0] == 302
    page = page_of(admin)
    assert headline(page) == "All 2 workers are draining, so nothing new begins."
    assert "with its cluster" in row_of(page, f"worker-{one.pk}")
    assert "<button" not in row_of(page, f"worker-{other.pk}")
    group = page.split('<tr class="group">')[1].split("</tr>")[0]
    assert "Resume" in text(group)
    assert act(admin, row, "resume")[0] == 302
    assert headline(page_of(admin)) == "All 2 workers are up, and nothing waits."


def test_all_others_see_the_buttons_disabled_with_the_reason(
    viewer: Client, operator: Client, admin: Client
) -> None:
    well, drained = cluster(count=2)
    act(admin, drained, "drain")
    for page, worker in product((page_of(viewer), page_of(operator)), (well, drained)):
        line = row_of(page, f"worker-{worker.pk}")
        assert re.search(r'<button[^>]*disabled title="Requires the admin role"', line)
        assert "/drain/" not in line
    assert viewer.get(f"/workers/{well.pk}/drain/").status_code == 403
    assert act(viewer, well, "drain")[0] == 403
    assert act(viewer, drained, "resume")[0] == 403
    denied = [(one.verb, one.actor) for one in Audit.objects.filter(outcome="denied").order_by("key")]
    assert denied == [("worker-drain", "vic"), ("worker-resume", "vic")]
    drained.refresh_from_db()
    assert drained.drained_at is not None


def test_a_worker_that_is_gone_has_no_page(admin: Client) -> None:
    assert admin.get("/workers/999/drain/").status_code == 404
    assert admin.post("/workers/999/drain/").status_code == 404
    assert admin.post("/workers/999/resume/").status_code == 404


def test_a_hostile_reason_is_text(admin: Client) -> None:
    (worker,) = cluster()
    act(admin, worker, "drain", reason="</td><script>alert(1)</script>")
    page = page_of(admin)
    assert "<script>alert" not in page
    assert "&lt;/td&gt;&lt;script&gt;" in page


def test_mixed_and_older_code_is_marked(viewer: Client) -> None:
    old = cluster("app-1", code="9e01c33", started_at=factories.ago(hours=30))
    new = cluster("app-2", code="2ba97fc", started_at=factories.ago(hours=2))
    page = page_of(viewer)
    assert "older" in text(row_of(page, f"worker-{old[0].pk}"))
    assert "older" not in text(row_of(page, f"worker-{new[0].pk}"))
    assert f'<a href="#worker-{old[0].pk}">1 worker</a> runs older code' in page
    groups = [text(group) for group in re.findall(r'<tr class="group">.*?</tr>', page, re.DOTALL)]
    assert ["older code" in group for group in groups] == [True, False]


def test_a_worker_that_was_replaced_in_an_old_cluster_has_old_code(viewer: Client) -> None:
    """Workers are replaced every hour, with the code of their cluster."""
    (replaced,) = cluster("app-1", code="9e01c33", started_at=factories.ago(hours=30))
    (new,) = cluster("app-2", code="2ba97fc", started_at=factories.ago(hours=2))
    Worker.objects.filter(pk=replaced.pk).update(started_at=factories.ago(minutes=3))
    page = page_of(viewer)
    assert "older" in text(row_of(page, f"worker-{replaced.pk}"))
    assert "older" not in text(row_of(page, f"worker-{new.pk}"))


def test_two_versions_in_one_cluster_are_counted(viewer: Client) -> None:
    one, other = cluster(count=2, code="2ba97fc")
    Worker.objects.filter(pk=other.pk).update(code="9e01c33")
    page = page_of(viewer)
    assert "2 versions of code" in text(page.split('<tr class="group">')[1].split("</tr>")[0])
    assert "2ba97fc" in row_of(page, f"worker-{one.pk}")


def test_memory_is_shown_in_its_unit(viewer: Client) -> None:
    (worker,) = cluster(memory=441 * 1024 * 1024)
    assert "441.0 MB" in text(row_of(page_of(viewer), f"worker-{worker.pk}")).replace("\xa0", " ")
