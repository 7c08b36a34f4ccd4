"""The list of bulk jobs and the page of one, as people read and steer them."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest
from django.test import Client

from engine import bulk
from engine.models import Audit, BulkJob
from studio.bulk import queries
from studio.bulk.live import BulkJobView
from studio.live.topics import view_of
from tests.studio.bulk.conftest import Fail, Run, read, text

People = Callable[..., Client]
WHY = {"reason": "It was a mistake."}


def test_without_jobs_the_list_says_where_they_come_from(people: People) -> None:
    said = read(people(), "/bulk/")
    assert "No bulk jobs in the last 30 days" in said
    assert "Tick some in a list." in said


def test_the_list_says_what_was_done_to_what_by_whom_and_why(people: People, fail: Fail, run: Run) -> None:
    fail(2)
    fail(1, undo=True)
    job = bulk.start("retry", "workflow:orders", by="ana", reason="The bank is back.")
    assert "running Retry 3 instances workflow:orders 0 done · 1 skipped · 2 left ana" in read(
        people(), "/bulk/"
    )
    run(job.id)
    said = read(people(name="bo"), "/bulk/")
    assert "complete Retry 3 instances workflow:orders 2 done · 1 skipped ana" in said
    assert "The bank is back." in said


def test_the_list_is_paged_by_place(people: People, fail: Fail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "PAGE", 2)
    (one,) = fail()
    for action in ("retry", "pause", "terminate"):
        bulk.start(action, instances=[one])
    client = people()
    first = client.get("/bulk/").content.decode()
    assert ["Terminate 1 instance" in first, "Pause 1 instance" in first, "Retry 1 inst" in first] == [
        True,
        True,
        False,
    ]
    (older,) = [part.split('"')[0] for part in first.split('href="') if part.startswith("/bulk/?before=")]
    second = read(client, older)
    assert ("Retry 1 instance" in second, "Pause 1 instance" in second) == (True, False)


@pytest.mark.parametrize("before", ["x", "-1", "\0", "9" * 30, "<b>"])
def test_an_invalid_place_is_said_to_be_ignored(people: People, before: str) -> None:
    answer = people().get("/bulk/", {"before": before})
    assert answer.status_code == 200
    assert "Ignored this unknown filter" in text(answer.content.decode())


def test_the_page_says_what_set_when_it_was_fixed_and_each_outcome(
    people: People, fail: Fail, run: Run
) -> None:
    good = fail(2)
    (rolled_back,) = fail(1, undo=True)
    job = bulk.start("retry", "workflow:orders status:errored", by="ana", reason="The bank <b>is</b> back.")
    run(job.id)
    said = read(people(), f"/bulk/{job.id}/")
    assert "Retry 3 instances complete" in said
    assert "Done 2 of 3 Failed 0 Skipped 1 Left 0" in said
    assert "Instances workflow:orders status:errored Set fixed" in said
    assert "What came later is not part of it. By ana Reason The bank <b>is</b> back." in said
    assert "ana started it" in said
    skipped = read(people(name="bo"), f"/bulk/{job.id}/?outcome=skipped")
    assert f"{rolled_back.id} orders skipped Its steps were rolled back, so it cannot be retried." in skipped
    assert good[0].id not in skipped
    # What became of those that were retried: the bank is still down.
    assert f"{good[0].id} orders done errored" in read(people(name="cy"), f"/bulk/{job.id}/?outcome=done")


def test_its_instances_are_paged_and_link_to_their_pages(
    people: People, fail: Fail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "PAGE", 2)
    found = fail(3)
    job = bulk.start("retry", instances=found)
    client = people()
    page = client.get(f"/bulk/{job.id}/").content.decode()
    assert f'href="{found[0].get_absolute_url()}"' in page
    assert found[2].id not in page
    assert f'href="/bulk/{job.id}/?after=2#bulk-items"' in page
    assert "3 that were chosen one by one" in text(page)
    assert found[2].id in read(client, f"/bulk/{job.id}/?after=2")
    assert "No more instances." in read(client, f"/bulk/{job.id}/?after=3")


def test_an_instance_that_was_deleted_meanwhile_is_still_named(people: People, fail: Fail, run: Run) -> None:
    (one,) = fail()
    job = bulk.start("retry", instances=[one])
    one.delete()
    run(job.id)
    said = read(people(), f"/bulk/{job.id}/")
    assert f"{one.id} orders skipped It was deleted. deleted" in said


@pytest.mark.parametrize("id", ["no-such-job", "reprise.bulk", "x" * 100])
def test_an_unknown_job_is_not_found(people: People, id: str) -> None:
    client = people()
    assert client.get(f"/bulk/{id}/").status_code == 404
    for act in ("pause", "resume", "abort", "retry-failed"):
        assert client.post(f"/bulk/{id}/{act}/", WHY).status_code == 404


def test_it_is_paused_resumed_and_aborted_with_rows_in_the_audit_trail(people: People, fail: Fail) -> None:
    job = bulk.start("retry", instances=fail(2), by="ana")
    client, where = people(name="oli"), f"/bulk/{job.id}/"
    assert client.post(f"{where}pause/").headers["Location"] == where
    assert bulk.get(job.id).status == "paused"
    assert "Paused. The batch that runs may still end." in read(client, where)
    assert client.post(f"{where}resume/").status_code == 302
    assert bulk.get(job.id).status == "running"
    refused = client.post(f"{where}abort/", {"reason": " \0 "})
    assert (refused.status_code, bulk.get(job.id).status) == (422, "running")
    assert "Not aborted. Enter a reason." in refused.content.decode()
    assert client.post(f"{where}abort/", WHY).status_code == 302
    assert bulk.get(job.id).status == "aborted"
    said = read(client, where)
    assert "oli aborted it" in said
    assert "It was a mistake." in said
    assert [one.verb for one in Audit.objects.filter(verb__startswith="bulk").order_by("key")] == [
        *("bulk-start", "bulk-pause", "bulk-resume", "bulk-abort")
    ]
    assert f'<a class="mono" href="{where}"' in client.get("/audit/").content.decode()


def test_what_does_not_apply_any_more_is_explained(people: People, fail: Fail, run: Run) -> None:
    job = bulk.start("retry", instances=fail())
    run(job.id)
    client = people()
    for act in ("pause", "resume", "abort", "retry-failed"):
        answer = client.post(f"/bulk/{job.id}/{act}/", WHY)
        assert answer.status_code == 409
        assert "It is complete. Nothing was changed." in text(answer.content.decode())


def test_what_failed_is_done_again(
    people: People, fail: Fail, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = fail(2)
    job = bulk.start("retry", instances=found)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("broken")

    with monkeypatch.context() as patch:
        patch.setattr("engine.jobs.batch.perform", broken)
        run(job.id)
    client, where = people(), f"/bulk/{job.id}/"
    said = read(client, where)
    assert "Retry the 2 that failed" in said
    assert f"{found[0].id} orders failed broken" in said
    assert client.post(f"{where}retry-failed/").status_code == 302
    assert bulk.get(job.id).left == 2
    assert run(job.id).done == 2


def test_a_viewer_sees_disabled_buttons_and_is_refused(people: People, fail: Fail) -> None:
    job = bulk.start("retry", instances=fail())
    client = people("viewer")
    page = client.get(f"/bulk/{job.id}/").content.decode()
    assert page.count('disabled title="Requires the operator role"') == 2
    for act in ("pause", "resume", "abort", "retry-failed"):
        assert client.post(f"/bulk/{job.id}/{act}/", WHY).status_code == 403
    assert bulk.get(job.id).status == "running"
    denied = Audit.objects.filter(outcome="denied")
    assert [(one.verb, one.data["bulk"]) for one in denied.order_by("key")][:2] == [
        ("bulk-pause", job.id),
        ("bulk-resume", job.id),
    ]


def test_its_live_view_is_that_of_its_page(people: People, fail: Fail, run: Run) -> None:
    job = bulk.start("retry", instances=fail(2))
    client = people()
    view = view_of(f"topic=bulk:{job.id}&outcome=done")
    assert isinstance(view, BulkJobView)
    answer = client.get(f"/_f/live/?topic=bulk:{quote(job.id)}")
    assert "2" in text(answer.content.decode())
    before = answer.content.decode()
    assert 'hx-target="#bulk-meter"' in before
    run(job.id)
    after = client.get(f"/_f/live/?topic=bulk:{quote(job.id)}").content.decode()
    assert "Done 2 of 2" in text(after)
    assert client.get("/_f/live/?topic=bulk:no-such-job").status_code == 200


def test_the_live_list_draws_the_shown_rows_and_says_how_many_are_new(people: People, fail: Fail) -> None:
    job = bulk.start("retry", instances=fail())
    (row,) = queries.job_rows(BulkJob.objects.all())
    client = people()
    bulk.start("pause", instances=[])
    drawn = client.get(f"/_f/live/?topic=bulk&keys={row.key}&top={row.key}").content.decode()
    assert f'hx-target="#b-{row.key}"' in drawn
    assert "1 new · show" in text(drawn)
    assert job.id in drawn
