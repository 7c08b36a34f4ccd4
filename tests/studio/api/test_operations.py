"""Every operation: what it answers, which is what the command line prints about the same instance."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.http import HttpResponse
from django.utils import timezone

from engine.models import Event, Instance, ScheduleRow
from engine.steer import launch
from tests.sample.workflows import process_order, tick
from tests.studio import factories
from tests.studio.api.conftest import PREFIX, Program, Programs, trail
from tests.studio.api.routes import operations

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("only_possible_rows")]

GOOD = {"customer": "Ada", "items": [{"sku": "pen", "quantity": 2}]}


def read(answer: HttpResponse, status: int = 200) -> Any:
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/json"
    return timeless(json.loads(answer.content))


def printed(*arguments: str) -> Any:
    """Return what the command line prints with --json."""
    out = io.StringIO()
    call_command("workflow", *arguments, "--json", stdout=out)
    return timeless(json.loads(out.getvalue()))


def timeless(document: Any) -> Any:
    """Leave out when it was read."""
    return (
        {name: value for name, value in document.items() if name != "now"}
        if isinstance(document, dict)
        else document
    )


def address_of(instance: Instance) -> str:
    return f"/workflows/{instance.workflow}/instances/{instance.id}"


def row(name: str = "mornings", **given: Any) -> ScheduleRow:
    fields: dict[str, Any] = {"expression": "0 9 * * 1-5", "timezone": "Europe/Berlin", "params": GOOD}
    fields["next_at"] = datetime.now(UTC) + timedelta(hours=3)
    return ScheduleRow.objects.create(workflow="process-order", name=name, **(fields | given))


def test_these_are_the_operations_and_what_each_needs() -> None:
    one = "workflows/<workflow:name>/instances/<id:id>"
    group = "errors/<fingerprint:fingerprint>"
    schedule = "schedules/<workflow:name>/<path:schedule>"
    reading = ["me", "workflows", "workflows/<workflow:name>", "paused-workflows", "instances", one]
    reading += [
        f"{one}/{what}" for what in ("steps", "steps/<step:seq>", "events", "children", "generations")
    ]
    reading += [f"{one}/{what}" for what in ("logs", "audit", "requests", "payloads/<slug:what>")]
    reading += [
        f"{one}/steps/<step:seq>/payloads/<slug:what>",
        "requests",
        "errors",
        group,
        *(f"{group}/{what}" for what in ("instances", "trend", "shares")),
        "bulk-jobs",
        "bulk-jobs/<job:job>",
        "bulk-jobs/<job:job>/items",
        "schedules",
        "workers",
        "audit",
        "health",
    ]
    steering = {
        f"{one}/{name}": name.replace("-", "_")
        for name in (
            "pause",
            "resume",
            "terminate",
            "restart",
            "retry-step",
            "fail-step",
            "skip-step",
            "retry-now",
            "wake-now",
            "retry-rollback",
            "accept-code",
        )
    }
    expected = {f"GET {route}": ("view", "") for route in reading}
    expected |= {f"POST {route}": ("operate", action) for route, action in steering.items()}
    expected |= {
        "POST workflows/<workflow:name>/instances": ("operate", "start"),
        "POST workflows/<workflow:name>/instances/batch": ("operate", "start"),
        f"POST {one}/restart/preview": ("operate", ""),
        f"DELETE {one}": ("operate", "delete"),
        f"POST {one}/events": ("operate", "send_event"),
        f"POST {one}/notes": ("operate", "note"),
        "POST events": ("view", ""),  # decided for the workflow in the body
        f"POST {one}/requests/<step:seq>/answer": ("view", ""),  # decided by the request itself
        **{
            f"POST {group}/{act}": ("view", "") for act in ("resolve", "ignore", "reopen", "notes")
        },  # by its workflow
        "POST bulk-jobs": ("operate", "bulk-start"),
        "POST bulk-jobs/preview": ("operate", ""),
        **{
            f"POST bulk-jobs/<job:job>/{act}": ("operate", f"bulk-{act}")
            for act in ("pause", "resume", "abort", "retry-failed")
        },
        f"POST {schedule}/pause": ("operate", "schedule-pause"),
        f"POST {schedule}/resume": ("operate", "schedule-resume"),
        f"POST {schedule}/run": ("operate", "schedule-run"),
        "POST workflows/<workflow:name>/pause": ("operate", "workflow-pause"),
        "POST workflows/<workflow:name>/resume": ("operate", "workflow-resume"),
        "POST workers/<worker:worker>/drain": ("operate", "worker-drain"),
        "POST workers/<worker:worker>/resume": ("operate", "worker-resume"),
    }
    assert {name: (one.verb, one.action) for name, one in operations().items()} == expected


class TestReading:
    def test_me_is_what_the_token_may_do_now(self, program_of: Programs) -> None:
        program = program_of("viewer", workflows=["order-*"])
        found = read(program.get("/me"))
        owner = found["name"].split()[0]
        assert found == {
            "name": f"{owner} (token:ci)",
            "verbs": ["view"],
            "workflows": ["order-*"],
            "expires_at": None,
        }

    def test_workflows_are_those_of_the_command_line(self, program: Program) -> None:
        factories.instance("errored", workflow="process-order")
        factories.instance(workflow="gone")
        factories.worker(["process-order"])
        assert read(program.get("/workflows")) == printed("list", "workflows")

    def test_a_workflow_has_its_schema_and_schedules(self, program: Program) -> None:
        row()
        found = read(program.get("/workflows/process-order"))
        assert found["workflow"]["params_schema"] == process_order.params_schema()
        assert [one["name"] for one in found["schedules"]] == ["mornings"]

    def test_an_instance_is_what_show_prints(self, program: Program) -> None:
        instance = factories.retrying()
        factories.child(instance)
        factories.event(instance)
        factories.deed(instance, "resume")
        answer = program.get(address_of(instance))
        assert read(answer) == printed("show", f"{instance.workflow}/{instance.id}")
        assert answer["ETag"] == '"1.0.waiting.retry."'
        full = read(program.get(f"{address_of(instance)}?full=true"))
        assert full == printed("show", f"{instance.workflow}/{instance.id}", "--full")
        assert full["events"][0]["payload"] == "thanks"

    def test_an_earlier_generation_is_what_show_prints(self, program: Program) -> None:
        instance = tick.start(by="ci")
        instance.terminate(by="ci")
        instance.restart(by="ci")
        found = read(program.get(f"{address_of(instance)}?generation=1"))
        shown = printed("show", str(instance), "--generation", "1")
        for one in (found, shown):
            assert one["instance"].pop("why").startswith("Terminated")  # … a moment ago
        assert found == shown
        assert found["instance"]["status"] == "terminated"

    def test_instances_are_what_list_prints(self, program: Program) -> None:
        for status in ("queued", "waiting", "paused", "complete", "errored"):
            factories.instance(status, tags=["eu"])
        listed = printed("list")
        assert read(program.get("/instances"))["instances"] == listed["instances"]

    def test_a_step_has_its_output_attempts_and_log(self, program: Program) -> None:
        instance = factories.retrying()
        factories.log(instance, "charging", step_seq=2, attempt=1)
        factories.log(instance, "elsewhere")
        shown = printed("show", f"{instance.workflow}/{instance.id}", "--full")
        found = read(program.get(f"{address_of(instance)}/steps/2"))
        assert found["step"] == shown["steps"][1]
        assert [line["message"] for line in found["logs"]] == ["charging"]

    def test_lists_of_an_instance(self, program: Program) -> None:
        instance = factories.retrying()
        born = factories.child(instance)
        factories.event(instance)
        factories.log(instance, "charging", step_seq=2, attempt=1)
        factories.deed(instance, "resume")
        shown = printed("show", f"{instance.workflow}/{instance.id}")
        where = address_of(instance)
        assert read(program.get(f"{where}/steps"))["steps"] == shown["steps"][::-1]
        assert read(program.get(f"{where}/children"))["children"] == shown["children"]
        assert shown["children"][0]["id"] == born.id
        (event,) = read(program.get(f"{where}/events"))["events"]
        assert event.pop("payload") == "thanks"
        assert [event] == shown["events"]
        (action,) = read(program.get(f"{where}/audit"))["actions"]
        assert (action.pop("workflow"), action.pop("id")) == (instance.workflow, instance.id)
        assert [action] == shown["audit"]
        assert [line["step"] for line in read(program.get(f"{where}/logs"))["logs"]] == [2]
        assert read(program.get(f"{where}/logs?step=1"))["logs"] == []

    def test_generations_are_those_of_show(self, program: Program) -> None:
        instance = tick.start(by="ci")
        for _ in range(2):
            instance.restart(by="ci")
        shown = printed("show", str(instance))["generations"]
        assert read(program.get(f"{address_of(instance)}/generations"))["generations"] == shown
        assert [one["number"] for one in shown] == [2, 1]

    def test_values_come_exactly_as_stored(self, program: Program) -> None:
        instance = factories.instance("complete", params={"b": 1, "a": 1e16}, output=[None])
        step = factories.step(instance, "charge", output="free")
        hidden = factories.step(instance, "secret", output="x", sensitive=True)
        where = address_of(instance)
        assert program.get(f"{where}/payloads/params").content == b'{"b":1,"a":1e+16}'
        assert read(program.get(f"{where}/payloads/output")) == [None]
        assert read(program.get(f"{where}/steps/{step.seq}/payloads/output")) == "free"
        assert program.get(f"{where}/steps/{hidden.seq}/payloads/output").status_code == 404
        assert program.get(f"{where}/payloads/error").status_code == 404
        assert program.get(f"{where}/payloads/tags").status_code == 404

    def test_requests_tell_whether_they_may_be_answered(self, program_of: Programs) -> None:
        instance = factories.instance("waiting", workflow="process-order")
        factories.request(instance, assignees=["ada"])
        (one,) = read(program_of("operator").get("/requests"))["requests"]
        assert (one["message"], one["assignees"], one["may_answer"]) == (
            "Refund 1,240 € to ACME?",
            ["ada"],
            False,
        )
        admin = program_of("root")
        assert read(admin.get(f"{address_of(instance)}/requests"))["requests"][0]["may_answer"] is True
        assert read(program_of("operator").get("/requests?mine=true"))["requests"] == []

    def test_schedules_are_those_of_the_command_line(self, program: Program) -> None:
        row(), row("evenings", paused_at=datetime.now(UTC), paused_by="li", next_at=None)
        mine = read(program.get("/schedules"))["schedules"]
        assert mine == printed("schedules", "list")["schedules"]
        assert [one["name"] for one in mine] == ["evenings", "mornings"]

    def test_workers_are_those_seen_lately(self, program: Program) -> None:
        factories.worker(["process-order"], name="host-1:1", held=3)
        factories.worker(["tick"], name="host-1:2", seen_at=factories.ago(seconds=60))
        (one,) = read(program.get("/workers"))["workers"]
        assert (one["name"], one["role"], one["slots"], one["held"]) == ("host-1:1", "shift", 64, 3)


class TestWriting:
    def test_a_start_answers_when_it_is_committed(self, program: Program) -> None:
        body = {
            "params": GOOD,
            "id": "order-1",
            "tags": ["eu"],
            "retention": {"complete": "7d"},
            "reason": "x",
        }
        answer = program.post("/workflows/process-order/instances", body)
        found = read(answer, 201)["instance"]
        shown = printed("show", "process-order/order-1")["instance"]
        assert found == {name: shown[name] for name in found}
        assert answer["Location"] == f"{PREFIX}/workflows/process-order/instances/order-1"
        stored = Instance.objects.get(id="order-1")
        assert (stored.params["customer"], stored.tags) == ("Ada", ["eu"])
        assert (stored.retention or {})["complete"] == 604_800.0
        entry = trail().get()
        assert (entry.verb, entry.reason, entry.actor) == ("start", "x", found["started_by"])
        assert entry.actor.endswith(" (token:ci)")
        assert read(program.get(answer["Location"].removeprefix(PREFIX)))["instance"]["id"] == "order-1"

    def test_a_later_start_answers_with_its_time_and_a_wrong_one_is_named(self, program: Program) -> None:
        at = (timezone.now() + timedelta(hours=1)).replace(microsecond=0)
        found = read(program.post("/workflows/tick/instances", {"at": at.isoformat()}), 201)["instance"]
        assert datetime.fromisoformat(found["starts_at"]) == at
        assert (found["status"], found["started_at"]) == ("queued", None)
        answer = program.post("/workflows/tick/instances", {"at": "2026-12-01T09:00"})
        assert answer.status_code == 422
        [error] = json.loads(answer.content)["errors"]
        assert error["path"].split("/")[0] == "at"
        assert '"2026-12-01T09:00:00" has no time zone' in error["message"]

    @pytest.mark.parametrize("empty", [b"", b" \n", b"{}"])
    def test_a_start_without_params_needs_no_body(self, program: Program, empty: bytes) -> None:
        found = read(program.post("/workflows/tick/instances", empty), 201)
        assert found["instance"]["workflow"] == "tick"

    def test_a_batch_starts_the_valid_ones(self, program: Program) -> None:
        launch.start(tick, id="taken")
        items = [{"id": "a"}, {"id": "taken"}, {"id": "b/c"}, 3, {"params": {"x": 1}}, {"id": "a"}]
        found = read(program.post("/workflows/tick/instances/batch", {"items": items, "reason": "x"}))
        assert [one["id"] for one in found["created"]] == ["a"]
        errors = [(one["index"], one["id"], one["code"]) for one in found["errors"]]
        assert errors == [
            (1, "taken", "id_in_use"),
            (2, "b/c", "invalid_name"),
            (3, None, "invalid_value"),
            (4, None, "invalid_params"),
            (5, "a", "id_in_use"),
        ]
        assert read(program.post("/workflows/tick/instances/batch", {"items": []})) == {
            "created": [],
            "errors": [],
        }

    def test_steering_answers_with_the_state_after_it(self, program: Program) -> None:
        instance = tick.start()
        where = address_of(instance)
        paused = program.post(f"{where}/pause", b"")
        assert (read(paused)["instance"]["status"], read(paused)["has_changed"]) == ("paused", True)
        again = read(program.post(f"{where}/pause"))
        assert (again["instance"]["status"], again["has_changed"]) == ("paused", False)
        assert read(program.post(f"{where}/resume"))["instance"]["status"] == "queued"
        ended = program.post(f"{where}/terminate", {"reason": "wrong"})
        assert read(ended)["instance"]["status"] == "terminated"
        assert ended["ETag"] == program.get(where)["ETag"]
        assert read_problem(program.post(f"{where}/accept-code"), 409)["code"] == "instance_finished"

    def test_a_restart_begins_a_generation(self, program: Program) -> None:
        instance = factories.retrying()
        where = address_of(instance)
        body = {"from_step": "charge_card"}
        plan = read(program.post(f"{where}/restart/preview", body))
        assert [one["name"] for one in plan["keeps"]] == ["reserve_stock"]
        assert [one["name"] for one in plan["runs_again"]] == ["charge_card"]
        answer = program.post(f"{where}/restart", body | {"reason": "again"})
        assert read(answer)["instance"]["generation"] == 2
        assert trail().get(verb="restart").reason == "again"

    def test_a_restart_takes_null_as_params(self, program: Program) -> None:
        instance = process_order.start({"customer": "Ada", "items": [{"sku": "a", "quantity": 1}]})
        answer = program.post(f"{address_of(instance)}/restart", {"reason": "again", "params": None})
        assert answer.status_code == 422
        assert json.loads(answer.content)["errors"][0]["path"] == "params"
        assert instance.refresh().generation == 1
        again = program.post(f"{address_of(instance)}/restart", {"reason": "again"})
        assert read(again)["instance"]["generation"] == 2

    def test_a_deletion_leaves_the_trail(self, program: Program) -> None:
        instance = tick.start()
        instance.terminate()
        found = read(program.send("DELETE", address_of(instance), {"reason": "old"}))
        assert found == {"deleted": {"workflow": "tick", "id": instance.id}}
        assert not Instance.objects.exists()
        entry, _ = read(program.get(f"/audit?id={instance.id}"))["actions"]
        assert (entry["verb"], entry["reason"], entry["workflow"]) == ("delete", "old", "tick")

    @pytest.mark.parametrize(
        ("query", "body"),
        [
            ("?reason=%C3%A4lter%20%26+old", None),
            ("?reason=%C3%A4lter%20%26+old", {}),
            ("", {"reason": "älter & old"}),
            ("?reason=", {"reason": "älter & old"}),
            ("?reason=%C3%A4lter%20%26+old", {"reason": ""}),
            ("?reason=%C3%A4lter%20%26+old", {"reason": "älter & old"}),
        ],
    )
    def test_a_deletion_takes_its_reason_in_the_address_and_in_the_body(
        self, program: Program, query: str, body: Any
    ) -> None:
        instance = tick.start()
        instance.terminate()
        assert program.send("DELETE", address_of(instance) + query, body).status_code == 200
        assert trail().get(verb="delete").reason == "älter & old"

    def test_a_deletion_for_two_reasons_is_refused(self, program: Program) -> None:
        instance = tick.start()
        instance.terminate()
        answer = program.send("DELETE", f"{address_of(instance)}?reason=old", {"reason": "new"})
        problem = json.loads(answer.content)
        assert (answer.status_code, problem["code"]) == (422, "invalid_request")
        assert [one["path"] for one in problem["errors"]] == ["?reason", "reason"]
        assert instance.refresh().status == "terminated"

    @pytest.mark.parametrize(
        ("query", "path"), [("", "reason"), ("?reason=%20", "reason"), ("?why=x", "why")]
    )
    def test_a_deletion_without_a_reason_is_refused(self, program: Program, query: str, path: str) -> None:
        instance = tick.start()
        instance.terminate()
        answer = program.send("DELETE", address_of(instance) + query)
        assert answer.status_code == 422
        assert [one["path"] for one in json.loads(answer.content)["errors"]] == [path]
        assert instance.refresh().status == "terminated"

    @pytest.mark.parametrize("has_address", [True, False])
    def test_an_event_is_buffered_once_for_its_key(self, program: Program, has_address: bool) -> None:
        instance = tick.start()
        where = f"{address_of(instance)}/events" if has_address else "/events"
        to = {} if has_address else {"workflow": "tick", "id": instance.id}
        body = {"type": "paid", "payload": {"sum": 3}, "dedup_key": "p-1", "reason": "x", **to}
        found = [read(program.post(where, body), 202) for _ in range(2)]
        assert found[0]["event"] == found[1]["event"]
        assert found[0]["event"] == printed("show", str(instance))["events"][0]
        assert found[0]["instance"]["id"] == instance.id
        assert Event.objects.get().payload == {"sum": 3}
        refused = read_problem(program.post(where, body | {"payload": 4}), 409)
        assert refused["code"] == "dedup_key_in_use"

    def test_an_answer_is_given_once(self, program: Program) -> None:
        instance = factories.instance("waiting", workflow="process-order")
        factories.request(instance)
        where = f"{address_of(instance)}/requests/1/answer"
        body = {"answer": {"refund": True, "amount": 3}, "comment": "fine"}
        found = read(program.post(where, body))
        assert (found["event"]["is_answer"], found["instance"]["id"]) == (True, instance.id)
        assert Event.objects.get().payload["comment"] == "fine"
        again = read_problem(program.post(where, body), 409)
        assert again["code"] == "request_answered"
        assert "token:ci" in again["detail"]

    def test_a_schedule_is_paused_resumed_and_run(self, program: Program) -> None:
        row("mornings in/out")
        where = "/schedules/process-order/mornings%20in%2Fout"
        paused = read(program.post(f"{where}/pause", {"reason": "holidays"}))["schedule"]
        assert paused["paused_at"] is not None
        assert read(program.post(f"{where}/resume"))["schedule"]["paused_at"] is None
        answer = program.post(f"{where}/run")
        found = read(answer, 201)["instance"]
        assert answer["Location"].endswith(f"/process-order/instances/{found['id']}")
        verbs = trail().order_by("key").values_list("verb", "reason")
        assert list(verbs)[:2] == [("schedule-pause", "holidays"), ("schedule-resume", "")]


def read_problem(answer: HttpResponse, status: int) -> Any:
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    return json.loads(answer.content)
