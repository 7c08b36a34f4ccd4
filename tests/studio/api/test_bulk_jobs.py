"""Bulk jobs over HTTP: what is answered, refused and hidden, and that a refused one does nothing at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import bulk, pauses, workflows
from engine.jobs import actions, selection
from engine.models import Audit, BulkItem, BulkJob, Instance
from tests.sample.workflows import tick
from tests.stories import run_to_end, wait_for
from tests.studio import factories
from tests.studio.api.conftest import PREFIX, Program, Programs

pytestmark = pytest.mark.django_db


def read(answer: Any, status: int = 200) -> Any:
    assert answer.status_code == status, answer.content
    return json.loads(answer.content)


def started(count: int = 3) -> list[Instance]:
    return [tick.start(id=f"t-{n}") for n in range(count)]


def named(*names: str) -> list[dict[str, str]]:
    return [dict(zip(("workflow", "id"), name.split("/"), strict=True)) for name in names]


def statuses() -> list[str]:
    return list(Instance.objects.of_users().order_by("key").values_list("status", flat=True))


def nothing_is_done() -> bool:
    return not BulkJob.objects.exists() and not BulkItem.objects.exists() and "paused" not in statuses()


def run(id: str) -> None:
    run_to_end(Instance.objects.get(workflow="reprise.bulk", id=id))


class TestStarting:
    def test_a_preview_says_what_would_be_done_and_does_nothing(self, program: Program) -> None:
        started()[0].terminate(reason="x")
        found = read(program.post("/bulk-jobs/preview", {"action": "pause", "query": "workflow:tick"}))
        assert found["preview"] == {
            "action": "pause",
            "total": 3,
            "eligible": 2,
            "examples": ["tick/t-1", "tick/t-2"],
            "rolled_back": None,
            "skipped": [
                {"code": "finished", "reason": "It has ended.", "count": 1, "examples": ["tick/t-0"]}
            ],
        }
        assert nothing_is_done()

    def test_a_retry_tells_those_that_were_rolled_back_apart(self, program: Program) -> None:
        factories.instance("errored", id="back")
        Instance.objects.update(rollback="complete")
        found = read(program.post("/bulk-jobs/preview", {"action": "retry", "query": "status:errored"}))
        assert (found["preview"]["eligible"], found["preview"]["skipped"]) == (0, [])
        assert found["preview"]["rolled_back"] == {
            "code": "rolled_back",
            "reason": "Its steps were rolled back, so it cannot be retried. It can be restarted.",
            "count": 1,
            "examples": ["orders/back"],
        }

    def test_a_job_is_started_and_read_until_its_end(self, program: Program) -> None:
        started()
        body = {"action": "pause", "query": "workflow:tick", "reason": "The bank is down."}
        answer = program.post("/bulk-jobs", body)
        job = read(answer, 201)["job"]
        assert answer["Location"] == f"{PREFIX}/bulk-jobs/{job['id']}"
        assert {key: job[key] for key in ("action", "query", "reason", "status", "total", "left")} == {
            "action": "pause",
            "query": "workflow:tick",
            "reason": "The bank is down.",
            "status": "running",
            "total": 3,
            "left": 3,
        }
        assert job["actor"].endswith("(token:ci)")
        run(job["id"])
        ended = read(program.get(f"/bulk-jobs/{job['id']}"))["job"]
        assert (ended["status"], ended["done"], ended["left"]) == ("complete", 3, 0)
        assert ended["ended_at"] is not None
        assert statuses() == ["paused"] * 3
        said = Audit.objects.filter(verb="pause").values_list("actor", "reason")
        assert set(said) == {(job["actor"], "The bank is down.")}

    def test_named_instances_are_the_set(self, program: Program) -> None:
        started()
        body = {"action": "pause", "instances": named("tick/t-2", "tick/t-0", "tick/t-2")}
        job = read(program.post("/bulk-jobs", body), 201)["job"]
        assert (job["total"], job["query"]) == (2, "")
        run(job["id"])
        assert statuses() == ["paused", "complete", "paused"]  # the worker did the other one, too

    def test_the_arguments_of_an_action_are_those_of_one_instance(self, program: Program) -> None:
        started(1)
        body = {"action": "restart", "query": "workflow:tick", "keys": "same", "reason": "x"}
        assert read(program.post("/bulk-jobs", body), 201)["job"]["arguments"] == {"keys": "same"}
        body = {"action": "terminate", "query": "workflow:tick", "rollback": True, "reason": "x"}
        assert read(program.post("/bulk-jobs", body), 201)["job"]["arguments"] == {"rollback": True}

    def test_the_pace_is_that_of_the_body_or_stops_after_five_failures(self, program: Program) -> None:
        started()
        body = {"action": "pause", "query": "workflow:tick"}
        usual = read(program.post("/bulk-jobs", body), 201)["job"]
        assert usual["pace"] == {"at_once": None, "ask_after": None, "stop_after": 5}
        bulk.abort(usual["id"])
        pace = {"at_once": 10, "ask_after": 1, "stop_after": None}
        job = read(program.post("/bulk-jobs", body | pace), 201)["job"]
        assert (job["pace"], job["arguments"], job["pause_reason"]) == (pace, {}, "")
        wait_for(Instance.objects.get(workflow="reprise.bulk", id=job["id"]), "paused")
        asked = read(program.get(f"/bulk-jobs/{job['id']}"))["job"]
        assert (asked["status"], asked["pause_reason"]) == (
            "paused",
            "The first has been tried. Resume the job to go on.",
        )
        assert read(program.post(f"/bulk-jobs/{job['id']}/resume"))["job"]["pause_reason"] == ""

    def test_the_pauses_of_the_workflows_end_with_the_start(self, program: Program) -> None:
        started()
        pauses.pause("tick", reason="The bank is down.")
        body = {"action": "pause", "query": "workflow:tick", "resume_workflows": True}
        read(program.post("/bulk-jobs", body), 201)
        assert pauses.paused() == []

    def test_a_repeated_request_starts_one_job(self, program: Program) -> None:
        started()
        body = {"action": "pause", "query": "workflow:tick"}
        first, again = (program.post("/bulk-jobs", body, Idempotency_Key="k-1") for _ in range(2))
        assert read(first, 201) == read(again, 201)
        assert again["Idempotency-Replayed"] == "true"
        assert BulkJob.objects.count() == 1

    def test_an_id_is_used_once(self, program: Program) -> None:
        started()
        body = {"action": "pause", "query": "workflow:tick", "id": "nightly-27"}
        assert read(program.post("/bulk-jobs", body), 201)["job"]["id"] == "nightly-27"
        refused = read(program.post("/bulk-jobs", body), 409)
        assert (refused["code"], refused["detail"]) == (
            "bulk_job_exists",
            'There already is a bulk job "nightly-27".',
        )
        assert (BulkJob.objects.count(), BulkItem.objects.count()) == (1, 3)
        wrong = read(program.post("/bulk-jobs", body | {"id": "no id"}), 422)
        assert (wrong["code"], wrong["errors"][0]["path"]) == ("invalid_name", "id")


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "code", "path"),
        [
            ({}, "invalid_request", "action"),
            ({"action": "delete", "query": "workflow:tick"}, "invalid_request", "action"),
            ({"action": "pause"}, "invalid_request", "query"),
            ({"action": "pause", "query": "workflow:tick", "instances": []}, "invalid_request", "query"),
            ({"action": "pause", "query": " "}, "invalid_value", "query"),
            ({"action": "pause", "query": "staus:open"}, "invalid_query", "query"),
            ({"action": "pause", "query": 7}, "invalid_request", "query"),
            ({"action": "pause", "query": "workflow:tick", "rollback": True}, "invalid_value", "rollback"),
            ({"action": "pause", "query": "workflow:tick", "keys": "same"}, "invalid_value", "keys"),
            ({"action": "restart", "query": "workflow:tick", "keys": "old"}, "invalid_request", "keys"),
            ({"action": "pause", "instances": ["tick/t-0"]}, "invalid_request", "instances/0"),
            ({"action": "pause", "instances": [{"workflow": "tick"}]}, "invalid_request", "instances/0/id"),
            ({"action": "pause", "query": "workflow:tick", "reson": "x"}, "invalid_request", "reson"),
        ],
    )
    def test_a_wrong_body_is_refused_with_its_place(
        self, program: Program, body: dict[str, Any], code: str, path: str
    ) -> None:
        started()
        for where in ("/bulk-jobs/preview", "/bulk-jobs"):
            found = read(program.post(where, body), 422)
            assert (found["code"], path in {one["path"] for one in found["errors"]}) == (code, True), found
        assert nothing_is_done()

    @pytest.mark.parametrize("name", ["at_once", "ask_after", "stop_after"])
    @pytest.mark.parametrize("value", [0, 1_000_001, "5", 1.5, True])
    def test_a_wrong_pace_is_refused_with_its_place(self, program: Program, name: str, value: Any) -> None:
        started()
        body = {"action": "pause", "query": "workflow:tick", name: value}
        found = read(program.post("/bulk-jobs", body), 422)
        assert [one["path"] for one in found["errors"]] == [name]
        assert nothing_is_done()

    @pytest.mark.parametrize("action", ["terminate", "restart"])
    def test_what_cannot_be_undone_needs_a_reason(self, program: Program, action: str) -> None:
        started()
        found = read(
            program.post("/bulk-jobs", {"action": action, "query": "workflow:tick", "reason": " "}), 422
        )
        assert (found["code"], found["errors"][0]["path"]) == ("reason_required", "reason")
        assert nothing_is_done()

    def test_a_reason_that_is_too_long_is_refused(self, program: Program) -> None:
        started()
        body = {"action": "pause", "query": "workflow:tick", "reason": "x" * 2_001}
        found = read(program.post("/bulk-jobs", body), 422)
        assert (found["code"], found["value"], found["limit"]) == ("limit", 2_001, 2_000)
        assert nothing_is_done()

    def test_more_instances_than_allowed_are_refused(
        self, program: Program, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started()
        monkeypatch.setattr(selection, "MOST_INSTANCES", 2)
        names = named("tick/t-0", "tick/t-1", "tick/t-2")
        for where in ("/bulk-jobs/preview", "/bulk-jobs"):
            for which in ({"instances": names}, {"query": "workflow:tick"}):
                found = read(program.post(where, {"action": "pause", **which}), 422)
                assert (found["code"], found["value"], found["limit"]) == ("limit", 3, 2)
        assert nothing_is_done()

    @pytest.mark.parametrize(
        "name", ["tick/none", "gone/t-0", "tick/\x1b[2J", "<b>/x", "reprise.bulk/nightly"]
    )
    def test_one_unknown_instance_and_nothing_is_done(self, program: Program, name: str) -> None:
        started()
        if name.startswith("reprise."):
            bulk.start("resume", instances=[], id="nightly")
            BulkJob.objects.all().delete()  # its instance stays
        for where in ("/bulk-jobs/preview", "/bulk-jobs"):
            body = {"action": "pause", "instances": named("tick/t-0", name, "tick/t-1")}
            assert read(program.post(where, body), 404)["code"] == "instance_not_found"
        assert nothing_is_done()

    def test_one_instance_of_others_and_nothing_is_done(self, program_of: Programs) -> None:
        started()
        factories.instance("queued", workflow="nap", id="n-0")
        narrow, body = program_of(workflows=["tick"]), {"action": "pause"}
        for where in ("/bulk-jobs/preview", "/bulk-jobs"):
            foreign = read(narrow.post(where, body | {"instances": named("tick/t-0", "nap/n-0")}), 404)
            absent = read(narrow.post(where, body | {"instances": named("tick/t-0", "nap/n-1")}), 404)
            assert foreign["detail"].replace("n-0", "n-1") == absent["detail"]
        assert nothing_is_done()

    def test_an_unknown_job_is_not_found(self, program: Program) -> None:
        for where in ("/bulk-jobs/none", "/bulk-jobs/none/items", "/bulk-jobs?cursor=none"):
            assert read(program.get(where), 404)["code"] == "bulk_job_not_found"
        for act in ("pause", "resume", "abort", "retry-failed"):
            assert read(program.post(f"/bulk-jobs/none/{act}"), 404)["code"] == "bulk_job_not_found"

    @pytest.mark.parametrize("query", ["cursor=a%00b", "cursor=", "limit=0", "limit=201", "status=done"])
    def test_a_wrong_page_of_jobs_is_refused(self, program: Program, query: str) -> None:
        assert read(program.get(f"/bulk-jobs?{query}"), 422)["code"] == "invalid_request"

    @pytest.mark.parametrize("query", ["cursor=x", "cursor=-1", "outcome=gone", "limit=201", "after=3"])
    def test_a_wrong_page_of_items_is_refused(self, program: Program, query: str) -> None:
        job = bulk.start("pause", "workflow:tick")
        assert read(program.get(f"/bulk-jobs/{job.id}/items?{query}"), 422)["code"] == "invalid_request"


class TestSteering:
    def test_it_is_paused_resumed_and_aborted(self, program: Program) -> None:
        started()
        job = bulk.start("pause", "workflow:tick", id="nightly")
        for act, status in (("pause", "paused"), ("pause", "paused"), ("resume", "running")):
            assert (
                read(program.post(f"/bulk-jobs/{job.id}/{act}", {"reason": "x"}))["job"]["status"] == status
            )
        for _ in range(2):
            assert read(program.post(f"/bulk-jobs/{job.id}/abort"))["job"]["status"] == "aborted"
        assert statuses() == ["queued"] * 3
        verbs = Audit.objects.filter(verb__startswith="bulk-").order_by("key").values_list("verb", flat=True)
        assert list(verbs) == ["bulk-start", "bulk-pause", "bulk-resume", "bulk-abort"]

    def test_what_failed_is_done_again(self, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(instance: Instance, **options: Any) -> Instance:
            raise ValueError("a trigger refused it")

        for n in range(3):
            workflows["listen-for"].start(["go"], id=f"l-{n}")
        job = bulk.start("pause", "workflow:listen-for")
        with monkeypatch.context() as patch:
            patch.setitem(actions._FUNCTIONS, "pause", fails)
            run(job.id)
        (first, *_) = read(program.get(f"/bulk-jobs/{job.id}/items?outcome=failed"))["items"]
        assert (first["code"], first["message"]) == ("ValueError", "a trigger refused it")
        again = read(program.post(f"/bulk-jobs/{job.id}/retry-failed"))["job"]
        assert (again["status"], again["left"], again["failed"]) == ("running", 3, 0)
        run(job.id)
        assert statuses() == ["paused"] * 3


class TestReading:
    def test_pages_of_jobs_fit_together_while_others_start(self, program: Program) -> None:
        made = [bulk.start("pause", "workflow:tick").id for _ in range(5)]
        found, cursor = [], ""
        while cursor is not None:
            page = read(program.get(f"/bulk-jobs?limit=2{cursor and f'&cursor={cursor}'}"))
            found.append([one["id"] for one in page["jobs"]])
            cursor = page["next_cursor"]
            bulk.start("pause", "workflow:tick")
        assert found == [made[:2:-1], made[2:0:-1], made[:1]]

    def test_pages_of_items_are_those_with_an_outcome(self, program: Program) -> None:
        rows = started(7)
        for row in rows[::3]:
            row.terminate(reason="x")
        job = bulk.start("pause", "workflow:tick")
        found, cursor = [], ""
        while cursor is not None:
            query = f"outcome=open&limit=2{cursor and f'&cursor={cursor}'}"
            page = read(program.get(f"/bulk-jobs/{job.id}/items?{query}"))
            found.append([one["id"] for one in page["items"]])
            cursor = page["next_cursor"]
        assert found == [["t-1", "t-2"], ["t-4", "t-5"]]
        (first, *others) = read(program.get(f"/bulk-jobs/{job.id}/items?outcome=skipped"))["items"]
        assert (first["id"], first["code"], first["message"]) == ("t-0", "finished", "It has ended.")
        assert len(others) == 2

    def test_a_token_sees_and_steers_only_jobs_all_of_whose_instances_it_may(
        self, program_of: Programs
    ) -> None:
        started()
        factories.instance("queued", workflow="nap", id="n-0")
        mine = bulk.start("pause", "workflow:tick", id="mine")
        bulk.start("pause", "status:queued", id="both")
        bulk.start("pause", "workflow:tick id:secret-of-others", id="empty")
        narrow = program_of("admin", workflows=["tick"])
        assert [one["id"] for one in read(narrow.get("/bulk-jobs"))["jobs"]] == [mine.id]
        assert read(narrow.get(f"/bulk-jobs/{mine.id}"))["job"]["total"] == 3
        for hidden in ("both", "empty"):
            read(narrow.get(f"/bulk-jobs/{hidden}"), 404)
            read(narrow.get(f"/bulk-jobs/{hidden}/items"), 404)
            for act in ("pause", "resume", "abort", "retry-failed"):
                read(narrow.post(f"/bulk-jobs/{hidden}/{act}"), 404)
        assert bulk.get("both").status == "running"

    def test_a_search_of_a_narrow_token_finds_only_what_it_may_touch(self, program_of: Programs) -> None:
        started()
        factories.instance("queued", workflow="nap", id="n-0")
        narrow, body = program_of(workflows=["tick"]), {"action": "pause", "query": "status:queued"}
        assert read(narrow.post("/bulk-jobs/preview", body))["preview"]["total"] == 3
        job = read(narrow.post("/bulk-jobs", body), 201)["job"]
        assert {one.workflow for one in bulk.items(job["id"])} == {"tick"}

    def test_a_viewer_reads_and_does_nothing(self, program_of: Programs) -> None:
        started()
        job, viewer = bulk.start("pause", "workflow:tick"), program_of("viewer")
        for where in ("/bulk-jobs", f"/bulk-jobs/{job.id}", f"/bulk-jobs/{job.id}/items"):
            read(viewer.get(where))
        for where in ("/bulk-jobs/preview", "/bulk-jobs"):
            read(viewer.post(where, {"action": "pause", "query": "workflow:tick"}), 403)
        for act in ("pause", "abort"):
            read(viewer.post(f"/bulk-jobs/{job.id}/{act}"), 403)
        read(viewer.post("/bulk-jobs/none/abort"), 403)
        denied = Audit.objects.filter(outcome="denied").order_by("key").values_list("verb", "data")
        assert list(denied) == [
            ("bulk-start", {"bulk": ""}),
            ("bulk-pause", {"bulk": job.id}),
            ("bulk-abort", {"bulk": job.id}),
        ]
        assert bulk.get(job.id).status == "running"
