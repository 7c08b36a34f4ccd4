"""With REPRISE_URL, each subcommand prints the same and ends with the same code as where the database is."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from engine import bulk, failures, pauses, workflows
from engine.command.subcommands import GROUPS, SUBCOMMANDS
from engine.models import BulkItem, BulkJob, Event, Instance, ScheduleRow, Worker
from engine.status.searching import searching
from engine.steer import events
from studio.access import tokens
from studio.access.token_rules import GIVABLE
from studio.client import Client
from studio.remote import reading
from studio.remote.source import READERS
from tests.stories import run_to_end
from tests.studio import factories
from tests.studio.remote.conftest import Run

pytestmark = pytest.mark.second_tier

# What a moment later is another: the time, and sentences that count the seconds.
PASSING = frozenset(("now", "why", "oldest_due_seconds"))
# What differs between two instances, and says who acted: a token over HTTP, the user of the system here.
OWN = PASSING | {
    *("started_by", "sent_by", "paused_by"),
    *("created_at", "started_at", "finished_at", "received_at", "wake_at", "deadline_at", "paused_at"),
    *("decided_by", "decided_at"),
    *("drained_at", "drained_by", "seen_at"),
    *("at", "actor"),
    "ended_at",
}
STUMBLED = "90317a7f59d6f5bc"  # the group of what "stumble" fails with
LATER = (timezone.now() + timedelta(days=1)).isoformat()
ORDER = '{"customer": "Ada", "items": [{"sku": "pen", "quantity": 2}]}'


def _much() -> None:
    """Record a bit of everything that texts show."""
    found = factories.retrying()
    factories.event(found, "order-approved", payload={"n": 1})
    factories.deed(found, "pause", reason="for lunch")
    factories.child(found, "complete", id="child")
    errored = factories.instance(
        "errored", id="mapped", tags=["red"], error={"type": "Oh", "message": "\x1b[2J no"}
    )
    map_ = factories.step(errored, "resize", kind="map", status="errored")
    for count, status in enumerate(["complete", "errored", "complete", "cancelled"], 1):
        factories.attempt(
            factories.step(errored, "resize", parent=map_.seq, count=count, status=status), status
        )
    factories.instance(
        "complete", id="done", output={"total": 1e16, "rest": [-0.0, None]}, params={"b": 1, "a": 2}
    )
    factories.instance(
        "paused", id="0193f2c4-7c1e-7000-8000-000000000000", workflow="a-name-that-leaves-no-room"
    )
    for attempts in (1, 2):
        run_to_end(workflows["stumble"].start({"attempts": attempts}, id=f"stumble-{attempts}"))
    failures.resolve(STUMBLED, by="ana", reason="It is gone.")
    run_to_end(workflows["stumble"].start({"attempts": 1}, id="stumble-3"))
    soon = timezone.now() + timedelta(hours=3, minutes=1)
    for name, at in (("mornings", soon), ("*/5 * * * *", None)):
        ScheduleRow.objects.create(
            workflow="tick",
            name=name,
            expression="*/5 * * * *",
            timezone="UTC",
            next_at=at,
            paused_at=None if at else soon,
        )
    factories.instance("queued", workflow="a-paused-workflow", id="held")
    pauses.pause("a-paused-workflow", by="ana", reason="It is too loud.")
    bulk.start("pause", "workflow:stumble", id="nightly", by="ana", reason="The bank is down.")
    bulk.start("resume", instances=[errored], id="weekly")
    bulk.pause("nightly", by="ana")


READS = [
    ["list"],
    ["list", "--limit", "2"],
    ["list", "--status", "open", "--status", "errored"],
    ["list", "--tag", "red"],
    ["list", "--q", "MAP"],
    ["list", "--workflow", "a-name-that-leaves-no-room"],
    ["list", "--before", "1"],
    ["list", "--query", "status:open -tag:red"],
    ["list", "--query", "params.customer:*", "--sort", "finished", "--limit", "2"],
    ["list", "--sort=-duration", "--status", "finished"],
    ["list", "workflows"],
    ["show", "{retrying}"],
    ["show", "{retrying}", "--full"],
    ["show", "{retrying}", "--limit", "1"],
    ["show", "orders/mapped"],
    ["show", "orders/mapped", "--full"],
    ["show", "orders/done"],
    ["show", "orders/done", "--generation", "1"],
    ["show", "orders/done", "--generation", "7"],
    ["events", "list", "{retrying}"],
    ["events", "list", "{retrying}", "--full", "--state", "buffered"],
    ["schedules"],
    ["schedules", "list", "--workflow", "tick"],
    ["errors"],
    ["errors", "list", "--state", "all", "--workflow", "tick", "--query", "PAPER"],
    ["errors", "list", "--state", "all", "--limit", "1"],
    ["errors", "show", STUMBLED],
    ["errors", "show", STUMBLED, "--full", "--which", "went_on", "--unit", "hour", "--limit", "1"],
    ["list", "--query", f"error-group:{STUMBLED}"],
    ["bulk"],
    ["bulk", "list", "--limit", "1"],
    ["bulk", "list", "--before", "weekly"],
    ["bulk", "show", "nightly"],
    ["bulk", "show", "nightly", "--outcome", "all", "--limit", "2"],
    ["bulk", "show", "nightly", "--outcome", "skipped", "--after", "1"],
    ["bulk", "preview", "retry", "--query", "status:finished"],
    ["bulk", "preview", "terminate", "{retrying}", "orders/mapped", "--rollback"],
    ["workers"],
    ["workers", "list"],
    ["workflows"],
    ["workflows", "list"],
    ["health"],
    ["health", "--min-workers", "0", "--max-due", "10d", "--max-paused", "5"],
    ["restart", "orders/mapped", "--preview"],
    ["restart", "orders/mapped", "--preview", "--from-step", "resize", "--kind", "map"],
    # Refused, by the engine or by the parser:
    ["show", "orders/none"],
    ["show", "tik/none"],
    ["list", "--workflow", "tik"],
    ["list", "--query", "staus:open tag:"],
    ["schedules", "list", "--workflow", "tik"],
    ["schedules", "run", "tick", "evenings"],
    ["start", "proces-order", "{}"],
    ["start", "process-order", '{"customer": "Ada", "items": [{"sku": "", "quantity": 0}]}'],
    ["start", "process-order", "{"],
    ["start", "tick", "--id", "no id"],
    ["start", "tick", "--retention", "done=7d"],
    ["start", "tick", "--at", "2026-12-01T09:00"],
    ["errors", "show", "0123456789abcdef"],
    ["errors", "show", "0123"],
    ["errors", "list", "--workflow", "tik"],
    ["errors", "list", "--before", "x"],
    ["errors", "ignore", STUMBLED],
    ["errors", "ignore", STUMBLED, "--until", "2026-01-01T00:00Z", "--reason", "x"],
    ["errors", "ignore", STUMBLED, "--until", "tomorrow", "--reason", "x"],
    ["errors", "resolve", "0123456789abcdef"],
    ["workflows", "pause", "tick"],
    ["workflows", "pause", "tik", "tick", "--reason", "x"],
    ["workflows", "resume", "tik", "--count", "1"],
    ["workflows", "resume", "a-paused-workflow", "--count", "1000001"],
    ["workflows", "resume", "tick"],
    ["bulk", "show", "none"],
    ["bulk", "show", "no id"],
    ["bulk", "list", "--before", "none"],
    ["bulk", "pause", "none"],
    ["bulk", "preview", "retry"],
    ["bulk", "preview", "retry", "orders/mapped", "--query", "status:errored"],
    ["bulk", "preview", "delete", "orders/mapped"],
    ["bulk", "preview", "retry", "orders/mapped", "tik/none", "orders/none"],
    ["bulk", "preview", "retry", "--query", "staus:errored"],
    ["bulk", "preview", "retry", "--query", " "],
    ["bulk", "preview", "retry", "--query", "status:errored", "--keys", "same"],
    ["bulk", "start", "retry", "--query", "status:errored"],
    ["bulk", "start", "restart", "orders/mapped", "orders/none", "--yes"],
    ["delete", "{retrying}", "--reason", "x"],
    ["retry-rollback", "orders/mapped"],
    ["restart", "orders/mapped", "--from-step", "resiz", "--kind", "map", "--reason", "x"],
    ["events", "send", "orders/done", "x"],
    ["answer", "{retrying}", "decide", "1"],
    ["answer", "{retrying}", "1", "1"],
    ["pause", "orders/done", "--yes"],
    ["pause", "--all-open"],
    ["resume", "--all-paused", "--workflow", "a-name-that-leaves-no-room"],
    ["frobnicate"],
    ["terminate", "orders/done"],
]


def test_what_is_read_or_refused_is_printed_alike(here: Run, elsewhere: Run) -> None:
    _much()
    retrying = str(Instance.objects.get(id__startswith="order-"))
    for words in READS:
        words = [word.replace("{retrying}", retrying) for word in words]
        assert elsewhere(*words) == here(*words), words


def test_documents_are_alike(here: Run, elsewhere: Run) -> None:
    _much()
    retrying = str(Instance.objects.get(id__startswith="order-"))
    for words in READS:
        words = [*(word.replace("{retrying}", retrying) for word in words), "--json"]
        local, remote = here(*words), elsewhere(*words)
        assert (remote.code, _document(remote.out, PASSING)) == (local.code, _document(local.out, PASSING)), (
            words
        )


def test_a_list_in_another_order_is_as_long_where_not_all_can_be_sorted(
    here: Run, elsewhere: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        factories.instance("complete", id=f"i-{number}")
    monkeypatch.setattr(reading, "PAGE", 2)
    whole = searching.search

    def narrow(*given: Any, **options: Any) -> Any:
        return whole(*given, **options, window=5)

    for where in ("studio.api.operations.instances.search", "engine.command.local.lists.searching.search"):
        monkeypatch.setattr(where, narrow)
    for limit in ("3", "4", "5", "6"):
        words = ["list", "--sort=-duration", "--limit", limit]
        (*remote, more), (*local, said) = (run(*words).out.splitlines() for run in (elsewhere, here))
        assert remote == local, limit
        assert more.partition("--before")[0] == said.partition("--before")[0], limit


def test_each_action_is_printed_alike(here: Run, elsewhere: Run) -> None:
    """Each is done to two instances that differ in nothing but their id."""
    for words, before in ACTIONS:
        for name in ("a", "b"):
            before(name)
        local = here(*(word.replace("{id}", "a") for word in words))
        remote = elsewhere(*(word.replace("{id}", "b") for word in words))
        assert (remote.code, _as_first(remote.out), remote.err) == (
            local.code,
            local.out,
            local.err,
        ), words
        assert local.code == 0, (words, local, remote)
        _forget()


def _as_first(out: str) -> str:
    """Return what was printed of the second instance as if it were the first."""
    return out.replace("/b", "/a").replace('"b"', '"a"').replace("job-b", "job-a")


def test_documents_of_actions_are_alike(here: Run, elsewhere: Run) -> None:
    for words, before in ACTIONS:
        for name in ("a", "b"):
            before(name)
        local = here(*(word.replace("{id}", "a") for word in words), "--json")
        remote = elsewhere(*(word.replace("{id}", "b") for word in words), "--json")
        assert _document(_as_first(remote.out), OWN) == _document(local.out, OWN), words
        _forget()


def test_pauses_of_workflows_are_alike(here: Run, elsewhere: Run) -> None:
    """Each is done twice from the same beginning. Who paused it and when differs, also in the text of a pause."""
    for words, before in OF_WORKFLOWS:
        for more in ([], ["--json"]):
            found = []
            for run in (here, elsewhere):
                before("a")
                found.append(run(*words, *more))
            local, remote = found
            assert (local.code, remote.code) == (0, 0), (words, local, remote)
            if more:
                assert _document(remote.out, OWN) == _document(local.out, OWN), words
            elif words[1] == "resume":
                assert remote.out == local.out, words


def test_every_subcommand_is_in_one_of_the_tables() -> None:
    tried = {tuple(words[:2]) for words, _ in (*ACTIONS, *OF_ADMINS, *OF_WORKFLOWS)} | {
        tuple(words[:2]) for words in READS
    }
    first, both = {words[0] for words in tried}, {" ".join(words) for words in tried}
    named = [one.words for group in GROUPS.values() for one in group[1]]
    assert [one.words for one in SUBCOMMANDS if one.words not in first] == ["replay", "index"]
    assert [words for words in named if words not in both] == []
    assert {one.words for one in SUBCOMMANDS} | {*named} == {*READERS, "replay", "index"}


# Actions, and what is there before


def _tick(id: str) -> None:
    workflows["tick"].start(id=id)


def _none(id: str) -> None:
    pass


def _paused(id: str) -> None:
    workflows["tick"].start(id=id).pause(reason="for lunch")


def _with_job(id: str) -> None:
    _tick(id)
    found = [Instance.objects.get(workflow="tick", id=id)]
    bulk.start("pause", instances=found, id=f"job-{id}", by="ana", reason="x")


def _with_paused_job(id: str) -> None:
    _with_job(id)
    bulk.pause(f"job-{id}")


def _with_ended_job(id: str) -> None:
    _with_job(id)
    bulk.abort(f"job-{id}")


def _finished(id: str) -> None:
    factories.attempt(factories.step(factories.instance("complete", id=id), "reserve"))


def _asking(id: str) -> None:
    factories.request(factories.instance("waiting", id=id))


def _with_rollback(id: str) -> None:
    found = factories.instance("waiting", id=id, wake_at=timezone.now() + timedelta(hours=1))
    step = factories.step(found, "charge", options={"rollback": {"max_attempts": 3}})
    factories.attempt(step)


def _failed(id: str) -> None:
    error = {"type": "OSError", "message": "no paper", "details": {}, "traceback": "", "step": "print"}
    found = factories.instance("errored", workflow="tick", id=id, error=error)
    factories.attempt(factories.step(found, "print", status="errored", delivery=1), "errored")


def _exhausted(id: str) -> None:
    error = {"type": "OSError", "message": "no paper", "details": {}, "traceback": "", "step": "print"}
    reason = {"type": "StepExhaustedError", "message": "used up", "details": {}, "traceback": ""}
    found = factories.instance("paused", workflow="tick", id=id, pause_reason=reason)
    options = {"max_attempts": 1, "on_exhausted": "pause"}
    step = factories.step(found, "print", status="waiting", options=options, error=error, wake_at=None)
    factories.attempt(step, "errored")


def _rollback_failed(id: str) -> None:
    found = factories.instance("errored", id=id)
    Instance.objects.filter(key=found.key).update(rollback="failed")


def _backing_off(id: str) -> None:
    _parked(id, "retry")


def _sleeping(id: str) -> None:
    _parked(id, "sleep")


def _parked(id: str, waiting_for: str) -> None:
    wake_at = timezone.now() + timedelta(hours=1)
    factories.instance("waiting", id=id, waiting_for=waiting_for, wake_at=wake_at)


def _other_code(id: str) -> None:
    Instance.objects.filter(key=workflows["tick"].start(id=id).key).update(code="other")


def _listening(id: str) -> None:
    workflows["listen-for"].start(["go"], id=id)


def _scheduled(id: str) -> None:
    at = timezone.now() + timedelta(days=1)
    ScheduleRow.objects.get_or_create(
        workflow="tick",
        name="*/5 * * * *",
        expression="*/5 * * * *",
        timezone="UTC",
        defaults={"next_at": at},
    )


def _schedule_paused(id: str) -> None:
    _scheduled(id)
    ScheduleRow.objects.update(paused_at=timezone.now(), next_at=None)


def _stumbled(id: str) -> None:
    run_to_end(workflows["stumble"].start({"attempts": 1}, id=id))


def _resolved(id: str) -> None:
    _stumbled(id)
    failures.resolve(STUMBLED)


def _active_workflow(id: str) -> None:
    _forget()  # so that as many are held each time
    for one in pauses.paused():
        pauses.resume(one.workflow)
    _tick(id)


def _paused_workflow(id: str) -> None:
    _active_workflow(id)
    pauses.pause("tick", reason="It is too loud.")


def _worker(id: str) -> None:
    Worker.objects.filter(name="host-1:1").delete()
    factories.worker(["tick"], name="host-1:1", worker_id=1, held=2)


def _drained_worker(id: str) -> None:
    _worker(id)
    Worker.objects.update(drained_at=timezone.now(), drained_by="li", drain_reason="y")


def _forget() -> None:
    BulkJob.objects.all().delete()
    BulkItem.objects.all().delete()
    Instance.objects.all().delete()
    ScheduleRow.objects.all().delete()


PACE = ("--at-once", "10", "--ask-after", "1", "--stop-after", "never", "--resume-workflows")
OF_WORKFLOWS: list[tuple[list[str], Callable[[str], Any]]] = [
    (["workflows", "pause", "tick", "--reason", "x"], _active_workflow),
    (["workflows", "pause", "tick", "process-order", "--reason", "x"], _paused_workflow),
    (["workflows", "resume", "tick", "--count", "1", "--reason", "x"], _paused_workflow),
    (["workflows", "resume", "tick"], _paused_workflow),
    (["workflows", "resume", "tick"], _active_workflow),
]
OF_ADMINS: list[tuple[list[str], Callable[[str], Any]]] = [
    (["workers", "drain", "host-1:1", "--reason", "x"], _worker),
    (["workers", "resume", "host-1:1"], _drained_worker),
    (["workers", "drain", "host-1:2"], _worker),
    (["workers", "resume", "host-1:2", "--reason", "x"], _drained_worker),
]
ACTIONS: list[tuple[list[str], Callable[[str], Any]]] = [
    (["start", "tick", "--id", "{id}", "--tag", "x", "--retention", "complete=7d", "--reason", "why"], _none),
    (["start", "process-order", ORDER, "--id", "{id}"], _none),
    (["start", "tick", "--id", "{id}", "--at", LATER], _none),
    (["pause", "tick/{id}", "--reason", "x"], _tick),
    (["pause", "tick/{id}"], _paused),
    (["resume", "tick/{id}"], _paused),
    (["resume", "tick/{id}"], _tick),
    (["terminate", "tick/{id}", "--reason", "x"], _tick),
    (["terminate", "orders/{id}", "--rollback", "--reason", "x"], _with_rollback),
    (["restart", "orders/{id}", "--reason", "x"], _finished),
    (["restart", "orders/{id}", "--from-step", "reserve", "--reason", "x"], _finished),
    (["restart", "orders/{id}", "--keys", "same", "--reason", "x"], _finished),
    (["retry-step", "tick/{id}", "--reason", "x"], _failed),
    (["retry-step", "tick/{id}", "--step", "print", "--count", "1"], _exhausted),
    (["fail-step", "tick/{id}", "print", "--reason", "x"], _exhausted),
    (["skip-step", "tick/{id}", "print", "--output", '{"n": [1, null]}', "--reason", "x"], _exhausted),
    (["delete", "orders/{id}", "--reason", "x"], _finished),
    (["retry-rollback", "orders/{id}"], _rollback_failed),
    (["retry-now", "orders/{id}", "--reason", "x"], _backing_off),
    (["wake-now", "orders/{id}"], _sleeping),
    (["wake-now", "orders/{id}", "--step", "wait", "--count", "1"], _sleeping),
    (["accept-code", "tick/{id}"], _other_code),
    (["note", "tick/{id}", "They called.\nThey will call again."], _tick),
    (["answer", "orders/{id}", "decide", '{"refund": true, "amount": 5}', "--comment", "fine"], _asking),
    (["answer", "orders/{id}", "1", '{"refund": true, "amount": 5}'], _asking),
    (["events", "send", "listen-for/{id}", "go", '{"n": 1}', "--dedup-key", "k"], _listening),
    (["bulk", "start", "pause", "tick/{id}", "--id", "job-{id}", "--yes", "--reason", "x"], _tick),
    (
        [
            "bulk",
            "start",
            "terminate",
            "tick/{id}",
            "--id",
            "job-{id}",
            "--yes",
            "--rollback",
            "--reason",
            "x",
        ],
        _tick,
    ),
    (["bulk", "start", "retry", "--query", "workflow:nap", "--id", "job-{id}", "--yes", "--wait"], _none),
    (["bulk", "start", "restart", "tick/{id}", "--id", "job-{id}", "--yes", "--reason", "x", *PACE], _tick),
    (["bulk", "pause", "job-{id}", "--reason", "x"], _with_job),
    (["bulk", "resume", "job-{id}"], _with_paused_job),
    (["bulk", "resume", "job-{id}"], _with_job),
    (["bulk", "abort", "job-{id}", "--reason", "x"], _with_job),
    (["bulk", "abort", "job-{id}"], _with_ended_job),
    (["bulk", "retry-failed", "job-{id}"], _with_job),
    (["errors", "resolve", STUMBLED, "--reason", "x"], _stumbled),
    (
        ["errors", "ignore", STUMBLED, "--until", "2099-01-01T00:00Z", "--count", "9", "--reason", "x"],
        _stumbled,
    ),
    (["errors", "reopen", STUMBLED], _resolved),
    (["errors", "note", STUMBLED, "The provider knows.\nLooking again at 03:45."], _stumbled),
    (["schedules", "pause", "tick", "*/5 * * * *"], _scheduled),
    (["schedules", "resume", "tick", "*/5 * * * *"], _schedule_paused),
]


def _with_key(id: str) -> None:
    _listening(id)
    events.send_event(Instance.objects.get(id=id), "go", 2, dedup_key="k")


def _full(id: str) -> None:
    _listening(id)
    row = Instance.objects.get(id=id)
    made = [
        Event(instance_id=row.key, type="go", payload=1, received_at=timezone.now())
        for _ in range(events.MAX_BUFFERED)
    ]
    Event.objects.bulk_create(made)


REFUSED: list[tuple[list[str], Callable[[str], Any]]] = [
    (["show", "orders/none"], _none),
    (["show", "tik/none"], _none),
    (["start", "proces-order", "{}"], _none),
    (["start", "process-order", '{"customer": "Ada", "items": [{"sku": "", "quantity": 0}]}'], _none),
    (["start", "process-order", '{"customer": "Ada", "items": [{"sku": "a/b"}, 1], "x.y/z": 1}'], _none),
    (["start", "process-order", "{"], _none),
    (["start", "process-order", '{"a": "\\u0000"}'], _none),
    (["start", "tick", "--id", "no id"], _none),
    (["start", "tick", "--id", "a"], _tick),
    (["start", "tick", "--retention", "done=7d"], _none),
    (["start", "tick", "--retention", "complete=1 fortnight"], _none),
    (["start", "tick", "--at", "tomorrow"], _none),
    (["start", "tick", "--at", "2999-12-01T09:00Z"], _none),
    (["start", "tick", "--tag", "x" * 101], _none),
    (["start", "tick", *(word for n in range(51) for word in ("--tag", str(n)))], _none),
    (["start", "tick", "--reason", "x" * 2001], _none),
    (["start", "sort-letters", '"' + "x" * 300_000 + '"'], _none),
    (["start", "sort-letters", "[" * 150 + "]" * 150], _none),
    (["pause", "tick/a", "--reason", "x" * 2001], _tick),
    (["terminate", "tick/a", "--reason", "x" * 2001], _tick),
    (["delete", "tick/a", "--reason", "x"], _tick),
    (["delete", "orders/a", "--reason", "x" * 2001], _finished),
    (["restart", "orders/a", "--from-step", "never", "--reason", "x"], _finished),
    (["retry-step", "tick/a"], _tick),
    (["retry-step", "tick/a", "--step", "never"], _exhausted),
    (["resume", "tick/a"], _exhausted),
    (["fail-step", "tick/a", "never", "--reason", "x"], _exhausted),
    (["skip-step", "tick/a", "never", "--count", "2", "--reason", "x"], _exhausted),
    (["skip-step", "tick/a", "print", "--output", "[" * 150 + "]" * 150, "--reason", "x"], _exhausted),
    (["note", "tick/a", " "], _tick),
    (["note", "tick/a", "x" * 4001], _tick),
    (["note", "tick/gone", "x"], _tick),
    (["errors", "note", STUMBLED, " "], _stumbled),
    (["errors", "note", "0123456789abcdef", "x"], _stumbled),
    (["retry-rollback", "tick/a"], _tick),
    (["retry-now", "tick/a"], _tick),
    (["retry-now", "orders/a"], _sleeping),
    (["wake-now", "tick/a"], _paused),
    (["wake-now", "orders/a", "--step", "nap", "--count", "2"], _sleeping),
    (["accept-code", "orders/a"], _finished),
    (["answer", "orders/a", "decide", '{"refund": "perhaps", "amount": []}'], _asking),
    (["answer", "orders/a", "decide", "1", "--comment", "x" * 2001], _asking),
    (["answer", "orders/a", "nothing", "1"], _asking),
    (["events", "send", "listen-for/a", ""], _listening),
    (["events", "send", "listen-for/a", "x" * 101], _listening),
    (["events", "send", "listen-for/a", "go", "--dedup-key", "x" * 1000], _listening),
    (["events", "send", "listen-for/a", "order-approved", '{"approved": [1]}'], _listening),
    (["events", "send", "listen-for/a", "go", "1", "--dedup-key", "k"], _with_key),
    (["events", "send", "listen-for/a", "go", "1"], _full),
    (["errors", "show", "0123456789abcdef"], _none),
    (["errors", "resolve", "0123456789abcdef"], _none),
    (["errors", "ignore", STUMBLED, "--until", "2020-01-01T00:00Z", "--reason", "x"], _stumbled),
    (["errors", "ignore", STUMBLED, "--reason", "x" * 2001], _stumbled),
    (["bulk", "start", "pause", "tick/a", "tick/none", "--yes"], _tick),
    (["bulk", "start", "pause", "tick/a", "--yes", "--reason", "x" * 2001], _tick),
    (["bulk", "start", "pause", "tick/a", "--yes", "--id", "no id"], _tick),
    (["bulk", "start", "pause", "tick/a", "--yes", "--id", "job-a"], _with_job),
    (["bulk", "start", "pause", "--query", "staus:open", "--yes"], _tick),
    (["bulk", "start", "pause", "tick/a", "--yes", "--rollback"], _tick),
    (["bulk", "start", "pause", "tick/a", "--yes", "--at-once", "501"], _tick),
    (["bulk", "abort", "none"], _tick),
    (["schedules", "run", "tick", "evenings"], _none),
    (["workflows", "pause", "tick", "tik", "--reason", "x"], _tick),
    (["workflows", "pause", "tick", "--reason", "x" * 2001], _tick),
    (["workflows", "resume", "tik"], _tick),
    (["workflows", "resume", "tick", "--count", "1000001"], _paused_workflow),
]


@pytest.mark.parametrize(("words", "before"), REFUSED, ids=[" ".join(words)[:60] for words, _ in REFUSED])
def test_documents_of_refusals_are_alike(
    here: Run, elsewhere: Run, words: list[str], before: Callable[[str], Any]
) -> None:
    before("a")
    local, remote = here(*words, "--json"), elsewhere(*words, "--json")
    assert (local.code, local.out) == (1, "")
    assert (remote.code, remote.out, json.loads(remote.err)) == (1, "", json.loads(local.err))


def test_a_schedule_is_run(here: Run, elsewhere: Run) -> None:
    _scheduled("a")
    for run in (here, elsewhere):
        done = run("schedules", "run", "tick", "*/5 * * * *")
        assert (done.code, done.out[:13]) == (0, "Started tick/")
    assert Instance.objects.count() == 2


def test_all_are_paused_and_resumed(here: Run, elsewhere: Run) -> None:
    said = []
    for run in (here, elsewhere):
        for name in ("one", "two"):
            _tick(name)
        _paused("held")
        factories.instance("paused", id="by-engine", pause_reason={"type": "Oh", "message": "no"})
        _scheduled("")
        said.append(
            [
                run("pause", "--all-open", "--schedules", "--reason", "restored", "--yes"),
                run("resume", "--all-paused", "--paused-for", "restored", "--yes"),
                run("resume", "--all-paused", "--workflow", "tick", "--yes", "--json"),
            ]
        )
        _forget()
    assert said[0] == said[1]
    assert [done.out for done in said[1][:2]] == [
        "2 instances paused, 1 schedule paused.\n",
        "2 instances resumed.\n",
    ]


def _meanwhile(monkeypatch: pytest.MonkeyPatch, method: str, act: Callable[[], object]) -> None:
    """Act once, on a connection of its own, when the client is about to make its first such call."""
    real, todo = getattr(Client, method), [act]

    def call(*arguments: Any, **options: Any) -> Any:
        while todo:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(todo.pop()).result()
                pool.submit(lambda: connection.close()).result()  # that of the thread
        return real(*arguments, **options)

    monkeypatch.setattr(Client, method, call)


def test_what_others_pause_meanwhile_is_not_counted(elsewhere: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two", "three"):
        _tick(name)

    def others() -> None:
        workflows["tick"].get("one").pause()
        workflows["tick"].get("two").terminate()

    _meanwhile(monkeypatch, "pause", others)
    done = elsewhere("pause", "--all-open", "--reason", "restored", "--yes")
    assert (done.code, done.out) == (0, "1 instance paused.\n")


def test_what_is_not_paused_by_people_any_more_is_not_resumed(
    elsewhere: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two", "three", "four"):
        _paused(name)

    def others() -> None:
        workflows["tick"].get("one").resume()
        workflows["tick"].get("two").terminate()
        workflows["tick"].get("three").resume()
        paused = {"status": "paused", "wake_at": None, "paused_at": timezone.now()}
        Instance.objects.filter(id="three").update(**paused, pause_reason={"type": "Oh", "message": "no"})
        workflows["tick"].get("four").send_event("approved")

    _meanwhile(monkeypatch, "resume", others)
    done = elsewhere("resume", "--all-paused", "--yes")
    assert (done.code, done.out, done.err) == (0, "1 instance resumed.\n", "")
    found = dict(Instance.objects.values_list("id", "status"))
    assert found == {"one": "queued", "two": "terminated", "three": "paused", "four": "queued"}


def test_more_schedules_than_a_page_are_all_listed_and_all_paused(here: Run, elsewhere: Run) -> None:
    row = {"workflow": "tick", "expression": "*/5 * * * *", "timezone": "UTC"}
    soon = timezone.now() + timedelta(hours=3, minutes=1)
    ScheduleRow.objects.bulk_create(ScheduleRow(name=f"{n:03}", next_at=soon, **row) for n in range(230))
    assert elsewhere("schedules").out == here("schedules").out
    done = elsewhere("pause", "--all-open", "--schedules", "--reason", "restored", "--yes")
    assert done.out == "0 instances paused, 230 schedules paused.\n"
    assert not ScheduleRow.objects.filter(paused_at=None).exists()


def _document(out: str, ignored: frozenset[str]) -> Any:
    return _without(json.loads(out), ignored) if out else None


def _without(document: Any, ignored: frozenset[str]) -> Any:
    if isinstance(document, list):
        return [_without(one, ignored) for one in document]
    if not isinstance(document, dict):
        return document
    return {key: _without(value, ignored) for key, value in document.items() if key not in ignored}


@pytest.mark.parametrize(("words", "before"), OF_ADMINS)
def test_the_token_of_an_admin_drains_and_resumes_and_one_of_the_team_does_not(
    here: Run, elsewhere: Run, words: list[str], before: Callable[[str], Any]
) -> None:
    admin = factories.person("admin", "grace")
    token = tokens.issue("mine", by=admin, owner=admin, verbs=GIVABLE, workflows=("*",)).text
    for more in ([], ["--json"]):
        before("a")
        local = here(*words, *more)
        before("a")
        remote = elsewhere(*words, *more, REPRISE_TOKEN=token)
        assert remote.code == local.code
        assert _document(remote.out, OWN) == _document(local.out, OWN) if more and local.out else True
        assert remote.out == local.out or more
    before("a")
    assert "someone who may administer" in elsewhere(*words).err
