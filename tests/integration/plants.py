"""Ways to violate each invariant, past every guard of the tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from engine.models import (
    Audit,
    BulkItem,
    BulkJob,
    Failure,
    FailureCount,
    Generation,
    IndexedPath,
    Instance,
    Log,
    Notice,
    OpenRequest,
    PauseRow,
    SearchValue,
    Step,
    Waiter,
    WorkflowCount,
    WorkflowCountDelta,
)
from engine.values.error_record import ErrorRecord
from engine.values.fingerprint import failed
from tests.integration.rows import NOW, attempt_of, event_of, row_of, step_of

LATER = NOW + timedelta(minutes=1)
DONE: dict[str, Any] = {"status": "complete", "finished_at": NOW, "wake_at": None, "output": 1}
ENDED: dict[str, Any] = {"status": "complete", "finished_at": NOW, "output": 1, "delivery": 1, "attempts": 1}
OPTIONS = {"max_attempts": 2}


def waiting(**values: Any) -> Instance:
    given = {"status": "waiting", "waiting_for": "event", "wake_at": None, "fence": 1}
    return row_of(**{**given, **values})


def wait_of(instance: Instance, seq: int = 1, **values: Any) -> Step:
    given = {"kind": "event", "status": "waiting", "event_types": ["e"]}
    return step_of(instance, seq, **{**given, **values})


def running(**values: Any) -> Instance:
    lease = timezone.now() + timedelta(seconds=30)
    return row_of(**{"status": "running", "owner": 7, "fence": 1, "wake_at": lease, **values})


# What to plant: one way to violate each invariant, by its name, or several.

PLANTS: list[tuple[str, Callable[[], object]]] = []


def plants(name: str) -> Callable[[Callable[[], object]], Callable[[], object]]:
    def keep(plant: Callable[[], object]) -> Callable[[], object]:
        PLANTS.append((name, plant))
        return plant

    return keep


@plants("no-more-workers-than-claims")
def _two_workers_one_claim() -> None:
    instance = running()
    step_of(instance, attempts=2, lost=1)
    attempt_of(instance, status="lost", finished_at=NOW, worker="a")
    attempt_of(instance, number=2, started_at=LATER, worker="b")


@plants("attempts-one-at-a-time")
def _overlapping_attempts() -> None:
    instance = running()
    step_of(instance, attempts=2, lost=1)
    attempt_of(instance, status="lost", finished_at=LATER)
    attempt_of(instance, number=2, started_at=NOW)


@plants("attempts-one-at-a-time")
def _two_attempts_at_once() -> None:
    instance = running()
    step_of(instance, attempts=2)
    attempt_of(instance)
    attempt_of(instance, number=2, started_at=LATER)


@plants("nothing-after-success")
def _attempted_after_success() -> None:
    instance = running()
    step_of(instance, attempts=2)
    attempt_of(instance, status="complete", finished_at=NOW)
    attempt_of(instance, number=2, started_at=LATER)


@plants("attempts-have-steps")
def _attempt_without_step() -> None:
    attempt_of(running())


@plants("attempts-have-steps")
def _attempt_at_a_sleep() -> None:
    instance = running()
    step_of(instance, kind="sleep", status="waiting", wake_at=LATER)
    attempt_of(instance)


@plants("attempts-without-gaps")
def _attempt_missing() -> None:
    instance = running()
    step_of(instance, attempts=2)
    attempt_of(instance, number=2)


@plants("attempts-without-gaps")
def _more_attempts_than_said() -> None:
    instance = running()
    step_of(instance, attempts=0)
    attempt_of(instance)


@plants("losses-are-counted")
def _loss_not_counted() -> None:
    instance = running()
    step_of(instance, attempts=1)
    attempt_of(instance, status="lost", finished_at=NOW)


@plants("budgets-are-kept")
def _too_many_errors() -> None:
    instance = running()
    step_of(instance, attempts=3, options=OPTIONS)
    for number in (1, 2, 3):
        attempt_of(instance, number=number, status="errored", finished_at=NOW)


@plants("budgets-are-kept")
def _too_many_losses() -> None:
    instance = running()
    step_of(instance, attempts=4, lost=4, options=OPTIONS)
    for number in (1, 2, 3, 4):
        attempt_of(instance, number=number, status="lost", quarantined=True, finished_at=NOW)


@plants("steps-end-like-their-last-attempt")
def _complete_step_with_failed_attempt() -> None:
    instance = running()
    step_of(instance, **ENDED)
    attempt_of(instance, status="errored", finished_at=NOW)


@plants("steps-end-like-their-last-attempt")
def _cancelled_step_with_complete_attempt() -> None:
    instance = running()
    step_of(instance, status="cancelled", finished_at=NOW, attempts=1)
    attempt_of(instance, status="complete", finished_at=NOW)


@plants("outcomes-are-recorded")
def _complete_step_without_output() -> None:
    instance = running()
    step_of(instance, **{**ENDED, "output": None})
    attempt_of(instance, status="complete", finished_at=NOW)


@plants("outcomes-are-recorded")
def _open_step_with_error() -> None:
    step_of(running(), error={"type": "E"})


@plants("outcomes-are-recorded")
def _finished_step_without_time() -> None:
    step_of(running(), status="cancelled")


@plants("outcomes-are-delivered")
def _outcome_without_delivery() -> None:
    step_of(running(), kind="sleep", status="complete", finished_at=NOW)


@plants("one-outcome-per-delivery")
def _two_outcomes_in_one_turn() -> None:
    instance = running()
    for seq in (1, 2):
        step_of(instance, seq, kind="sleep", status="complete", finished_at=NOW, delivery=1)


@plants("outcomes-in-time-order")
def _outcome_older_than_its_predecessor() -> None:
    instance = running()
    for seq, when in ((1, LATER), (2, NOW)):
        step_of(instance, seq, kind="sleep", status="complete", finished_at=when, delivery=seq)


@plants("inner-steps-end-first")
def _open_inside_a_finished_step() -> None:
    instance = running()
    step_of(instance, status="complete", finished_at=NOW, delivery=1, output=1)
    step_of(instance, 2, parent=1, status="running")


@plants("inner-steps-end-first")
def _inside_a_step_that_is_not_there() -> None:
    step_of(running(), 2, parent=1, status="running")


@plants("generations-exist")
def _step_of_a_generation_to_come() -> None:
    step_of(running(), generation=2)


@plants("finished-is-idle")
def _finished_with_wake_up() -> None:
    row_of(**{**DONE, "wake_at": NOW})


@plants("finished-is-idle")
def _open_with_an_end() -> None:
    running(finished_at=NOW)


@plants("finished-has-an-outcome")
def _complete_without_output() -> None:
    row_of(**{**DONE, "output": None})


@plants("finished-has-an-outcome")
def _errored_without_error() -> None:
    row_of(**{**DONE, "status": "errored", "output": None})


@plants("finished-has-nothing-open")
def _finished_with_open_step() -> None:
    step_of(row_of(**DONE), kind="sleep", status="waiting", wake_at=NOW)


@plants("finished-has-nothing-open")
def _finished_step_with_running_attempt() -> None:
    instance = running()
    step_of(instance, status="cancelled", finished_at=NOW, attempts=1)
    attempt_of(instance)


@plants("nothing-after-the-end")
def _step_after_the_end() -> None:
    step_of(row_of(**DONE), status="cancelled", started_at=LATER, finished_at=LATER)


@plants("no-rollback-on-success")
def _rolled_back_after_success() -> None:
    row_of(**DONE, rollback="complete")


UNDOABLE: dict[str, Any] = {**ENDED, "options": {"max_attempts": 2, "rollback": {"max_attempts": 1}}}
FAILED: dict[str, Any] = {"status": "errored", "finished_at": LATER, "wake_at": None, "error": {}}


def undone(instance: Instance, seq: int = 1, **values: Any) -> None:
    """Write an attempt at a rollback."""
    given = {"phase": "rollback", "status": "complete", "started_at": LATER, "finished_at": LATER}
    attempt_of(instance, seq, **{**given, **values})


@plants("rollback-states-are-consistent")
def _ended_amid_its_rollbacks() -> None:
    row_of(**FAILED, rollback="running")


@plants("rollback-states-are-consistent")
def _rolled_back_before_the_end() -> None:
    running(rollback="complete")


@plants("rollbacks-are-complete")
def _failed_and_not_rolled_back() -> None:
    step_of(row_of(**FAILED), **UNDOABLE)


@plants("rollbacks-are-complete")
def _step_left_out_of_the_rollback() -> None:
    step_of(row_of(**FAILED, rollback="complete"), **UNDOABLE)


@plants("rollbacks-are-complete")
def _failed_rollback_that_nobody_tells_of() -> None:
    step_of(row_of(**FAILED, rollback="complete"), **UNDOABLE, rollback="failed")


@plants("rollbacks-have-a-function")
def _rolled_back_without_a_function() -> None:
    step_of(row_of(**FAILED, rollback="complete"), **ENDED, rollback="complete")


@plants("rollbacks-have-a-function")
def _attempt_at_no_rollback() -> None:
    instance = row_of(**FAILED)
    step_of(instance, **UNDOABLE)
    undone(instance)


@plants("rollbacks-in-reverse-order")
def _undone_before_what_came_later() -> None:
    instance = row_of(**FAILED, rollback="failed")
    for seq in (1, 2):
        step_of(instance, seq, **{**UNDOABLE, "delivery": seq}, rollback="complete")
        undone(instance, seq, started_at=LATER - timedelta(minutes=seq), finished_at=LATER)


@plants("rollbacks-in-reverse-order")
def _undone_past_a_failed_rollback() -> None:
    instance = row_of(**FAILED, rollback="failed")
    step_of(instance, **UNDOABLE, rollback="complete")
    step_of(instance, 2, **{**UNDOABLE, "delivery": 2}, rollback="failed")
    undone(instance)
    undone(instance, 2, status="errored", error={})


@plants("nothing-forward-after-a-rollback")
def _step_begun_after_a_rollback() -> None:
    instance = row_of(**FAILED, rollback="complete")
    step_of(instance, **UNDOABLE, rollback="complete")
    undone(instance, started_at=NOW)
    step_of(instance, 2, status="cancelled", started_at=LATER, finished_at=LATER)


@plants("nothing-forward-after-a-rollback")
def _attempt_after_a_rollback() -> None:
    instance = row_of(**FAILED, rollback="complete")
    step_of(instance, **UNDOABLE, rollback="complete")
    undone(instance, started_at=NOW)
    attempt_of(instance, status="complete", started_at=LATER, finished_at=LATER)


@plants("rollbacks-end-like-their-last-attempt")
def _complete_without_an_attempt() -> None:
    step_of(row_of(**FAILED, rollback="complete"), **UNDOABLE, rollback="complete")


@plants("rollbacks-end-like-their-last-attempt")
def _failed_after_success() -> None:
    instance = row_of(**FAILED, rollback="failed")
    step_of(instance, **UNDOABLE, rollback="failed")
    undone(instance)


@plants("rollbacks-end-like-their-last-attempt")
def _attempt_at_a_rollback_missing() -> None:
    instance = row_of(**FAILED, rollback="complete")
    step_of(instance, **UNDOABLE, rollback="complete")
    undone(instance, number=2)


@plants("budgets-of-rollbacks-are-kept")
def _too_many_failures_of_a_rollback() -> None:
    instance = row_of(**FAILED, rollback="failed")
    step_of(instance, **UNDOABLE, rollback="failed")
    for number in (1, 2):
        undone(instance, number=number, status="errored", error={"type": "ValueError"})


@plants("paused-is-idle")
def _paused_with_wake_up() -> None:
    row_of(status="paused", paused_at=NOW, wake_at=NOW)


@plants("nothing-runs-while-paused")
def _attempt_that_stands_as_running() -> None:
    instance = row_of(status="paused", wake_at=None, paused_at=LATER)
    step_of(instance, attempts=1)
    attempt_of(instance)


@plants("nothing-starts-while-paused")
def _attempt_while_paused() -> None:
    instance = row_of(status="paused", paused_at=NOW, wake_at=None, fence=1)
    step_of(instance, attempts=1)
    attempt_of(instance, started_at=LATER)


@plants("open-has-a-wake-up")
def _queued_without_wake_up() -> None:
    row_of(wake_at=None)


@plants("open-has-a-wake-up")
def _waiting_for_nothing() -> None:
    waiting()


@plants("wake-ups-match-steps")
def _sleeper_that_wakes_too_late() -> None:
    soon = timezone.now() + timedelta(hours=1)
    instance = waiting(waiting_for="sleep", wake_at=soon + timedelta(hours=1))
    step_of(instance, kind="sleep", status="waiting", wake_at=soon)


@plants("nothing-is-overdue")
def _overdue() -> None:
    row_of(wake_at=timezone.now() - timedelta(minutes=2))


@plants("no-wait-for-an-arrived-event")
def _parked_on_a_buffered_event() -> None:
    instance = waiting()
    wait_of(instance)
    event_of(instance)


@plants("ids-are-unique")
def _one_id_twice() -> None:
    row_of()
    row_of()


@plants("nothing-without-its-instance")
def _orphans() -> None:
    gone = Instance(key=4711)
    step_of(gone)


@plants("nothing-without-its-instance")
def _orphaned_log() -> None:
    Log.objects.create(instance_id=4711, generation=1, level="info", message="", at=NOW)


@plants("nothing-without-its-instance")
def _orphaned_request() -> None:
    OpenRequest.objects.create(instance_id=4711, generation=1, seq=1, opened_at=NOW)


@plants("nothing-without-its-instance")
def _orphaned_generation() -> None:
    generation_of(Instance(key=4711))


@plants("owner-and-lease-together")
def _running_without_owner() -> None:
    running(owner=None)


@plants("owner-and-lease-together")
def _owner_that_never_claimed() -> None:
    running(fence=0)


@plants("limits-are-kept")
def _one_more_than_may_run() -> None:
    for number in range(3):
        running(id=f"running-{number}")


@plants("leases-are-swept")
def _lease_forgotten() -> None:
    running(wake_at=timezone.now() - timedelta(minutes=2))


@plants("events-go-to-waits")
def _consumed_by_a_wait_that_timed_out() -> None:
    instance = running()
    wait_of(instance, status="errored", finished_at=NOW, error={"type": "E"}, delivery=1)
    event_of(instance, state="consumed", consumed_by=1, consumed_generation=1)


@plants("events-go-to-waits")
def _consumed_by_a_wait_for_something_else() -> None:
    instance = running()
    wait_of(instance, **{**ENDED, "attempts": 0}, event_types=["other"])
    event_of(instance, state="consumed", consumed_by=1, consumed_generation=1)


@plants("events-go-to-waits")
def _consumed_by_nobody_known() -> None:
    event_of(running(), state="consumed", consumed_by=1, consumed_generation=1)


@plants("waits-end-with-one-event")
def _completed_without_event() -> None:
    wait_of(running(), **{**ENDED, "attempts": 0})


@plants("waits-end-with-one-event")
def _completed_with_another_payload() -> None:
    instance = running()
    wait_of(instance, **{**ENDED, "attempts": 0, "output": {"type": "e", "payload": 1}})
    event_of(instance, state="consumed", consumed_by=1, consumed_generation=1, payload=2)


@plants("oldest-event-first")
def _younger_event_first() -> None:
    instance = running()
    wait_of(instance, **{**ENDED, "attempts": 0, "output": {"type": "e", "payload": 2}})
    event_of(instance, payload=1)
    event_of(instance, state="consumed", consumed_by=1, consumed_generation=1, payload=2)


@plants("event-states-are-consistent")
def _buffered_but_consumed() -> None:
    event_of(running(), consumed_by=1)


@plants("dedup-keys-are-unique")
def _dedup_key_twice() -> None:
    instance = running()
    event_of(instance, dedup_key="k")
    event_of(instance, dedup_key="k")


@plants("no-timeout-after-arrival")
def _timed_out_beside_its_event() -> None:
    error = {"type": "EventTimeoutError", "details": {"timeout": 3600}}
    instance = running()
    wait_of(instance, status="errored", finished_at=NOW + timedelta(hours=1), error=error, delivery=1)
    event_of(instance, received_at=NOW + timedelta(minutes=30))


@plants("terminations-are-audited")
def _terminated_by_nobody() -> None:
    row_of(status="terminated", finished_at=NOW, wake_at=None)


@plants("pause-reasons-only-when-paused")
def _reason_of_no_pause() -> None:
    row_of(pause_reason={"type": "CodeChangedError"})


@plants("errors-only-at-ends")
def _error_without_an_end() -> None:
    row_of(error={"type": "LookupError"})


@plants("decisions-are-awaited")
def _parked_undecided() -> None:
    one = row_of(status="waiting", waiting_for="event", wake_at=None)
    step_of(one, status="waiting", error={"type": "LookupError"}, attempts=1)


@plants("pauses-are-audited")
def _paused_by_nobody() -> None:
    row_of(status="paused", paused_at=NOW, wake_at=None)


def child_of(parent: Instance, seq: int = 1, **values: Any) -> Instance:
    links = {
        "parent_key": parent.key,
        "parent_generation": 1,
        "parent_step": seq,
        "is_tied": True,
        "depth": 1,
    }
    return row_of(**{"id": f"child-{seq}", **links, **values})


@plants("open-has-a-wake-up")
def _waiting_for_no_child() -> None:
    waiting(waiting_for="child")


@plants("one-child-per-call")
def _two_children_of_a_call() -> None:
    parent = running()
    step_of(parent, kind="child", status="waiting")
    child_of(parent, id="a")
    child_of(parent, id="b")


@plants("children-have-steps")
def _child_without_a_step() -> None:
    child_of(running())


@plants("results-match-children")
def _other_output_than_the_childs() -> None:
    parent = running()
    step_of(parent, kind="child", status="complete", finished_at=NOW, output=2, delivery=1)
    child_of(parent, **DONE)


@plants("results-match-children")
def _failure_of_a_child_that_completed() -> None:
    parent = running()
    error = {"type": "ChildWorkflowError", "details": {"status": "errored"}}
    step_of(parent, kind="child", status="errored", finished_at=NOW, error=error, delivery=1)
    child_of(parent, **DONE)


@plants("results-match-children")
def _result_of_a_child_that_runs() -> None:
    parent = running()
    step_of(parent, kind="child", status="complete", finished_at=NOW, output=1, delivery=1)
    child_of(parent)


@plants("no-orphans")
def _child_of_a_cancelled_step() -> None:
    parent = row_of(status="terminated", finished_at=NOW, wake_at=None)
    step_of(parent, kind="child", status="cancelled", finished_at=NOW)
    child_of(parent)


@plants("no-orphans")
def _branch_of_a_parallel_that_ends_its_branches() -> None:
    parent = running()
    options = {"on_failure": "terminate"}
    step_of(parent, kind="parallel", status="errored", finished_at=NOW, error={}, options=options, delivery=1)
    step_of(parent, 2, parent=1, kind="child", status="cancelled", finished_at=NOW)
    child_of(parent, 2)


def starts(call: str, id: str = "child-1") -> dict[str, Any]:
    return {"kind": "child", "options": {"operation": call, "workflow": "tick", "id": id}}


@plants("steps-have-their-own-children")
def _child_that_is_missing() -> None:
    step_of(waiting(waiting_for="child", id="parent"), status="waiting", **starts("run_workflow"))


@plants("steps-have-their-own-children")
def _somebody_elses_instance_in_the_place_of_a_child() -> None:
    step_of(running(id="parent"), status="waiting", **starts("run_workflow"))
    row_of(id="child-1")


@plants("steps-have-their-own-children")
def _somebody_elses_child_in_the_place_of_a_spawned_one() -> None:
    parent = running(id="parent")
    child = child_of(parent)
    step_of(parent, 2, **{**ENDED, **starts("spawn", child.id)})


@plants("times-are-readable")
def _deadline_that_python_cannot_read() -> None:
    row = row_of()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE engine_instance SET deadline_at = 'infinity' WHERE key = %s", [row.key])


@plants("times-are-readable")
def _moment_of_a_log_line_before_its_time() -> None:
    Log.objects.create(instance=row_of(), generation=1, level="info", message="", at=NOW.replace(year=1969))


@plants("no-early-start")
def _a_start_before_its_time() -> None:
    running(started_at=NOW, starts_at=NOW + timedelta(hours=1))


@plants("no-early-start")
def _a_wake_up_before_its_start() -> None:
    row_of(wake_at=NOW, starts_at=NOW + timedelta(hours=1))


@plants("ends-are-reported")
def _parked_on_a_child_that_has_ended() -> None:
    parent = waiting(waiting_for="child")
    child = child_of(parent, **DONE)
    step_of(parent, kind="child", status="waiting", options={"workflow": child.workflow, "id": child.id})


@plants("notices-are-sent")
def _end_that_nobody_knows_of() -> None:
    row_of(notify_pending=True, **DONE)


# Generations


def restarted(data: object = None, **values: Any) -> Instance:
    """An instance in its second generation, with the restart in the audit trail."""
    instance = running(**{"generation": 2, "fence": 2, **values})
    generation_of(instance)
    Audit.objects.create(
        verb="restart",
        workflow=instance.workflow,
        instance_id=instance.id,
        instance_key=instance.key,
        data=data,
    )
    return instance


def generation_of(instance: Instance, number: int = 1, **values: Any) -> Generation:
    given = {"status": "terminated", "started_at": NOW, "finished_at": LATER, **values}
    return Generation.objects.create(instance=instance, number=number, **given)


def kept(instance: Instance, seq: int = 1, **values: Any) -> None:
    """A step of the first generation, and its copy in the second one with what differs."""
    step_of(instance, seq, **ENDED)
    attempt_of(instance, seq, status="complete", finished_at=NOW)
    step_of(instance, seq, **{**ENDED, "generation": 2, "kept_from": 1, **values})


@plants("generations-are-kept")
def _generation_forgotten() -> None:
    restarted(generation=3)


@plants("generations-are-kept")
def _generation_kept_twice() -> None:
    generation_of(restarted())


@plants("generations-are-kept")
def _generation_kept_without_an_end() -> None:
    instance = running(generation=2)
    generation_of(instance, status="running", finished_at=None)


@plants("earlier-generations-have-ended")
def _step_after_the_end_of_its_generation() -> None:
    step_of(restarted(), **{**ENDED, "finished_at": LATER + timedelta(minutes=1)})


@plants("earlier-generations-have-ended")
def _attempt_after_the_end_of_its_generation() -> None:
    late = LATER + timedelta(minutes=1)
    attempt_of(restarted(), started_at=late, finished_at=late, status="errored")


@plants("earlier-generations-have-ended")
def _rolled_back_in_an_earlier_generation() -> None:
    step_of(restarted(), **{**ENDED, "rollback": "running"})


@plants("earlier-generations-have-ended")
def _waiting_in_an_earlier_generation() -> None:
    instance = restarted()
    Waiter.objects.create(waiter=instance, generation=1, seq=1, instance=row_of(id="other"))


@plants("earlier-generations-have-ended")
def _asked_in_an_earlier_generation() -> None:
    OpenRequest.objects.create(instance=restarted(), generation=1, seq=1, opened_at=NOW)


@plants("finished-has-nothing-open")
def _open_in_an_earlier_generation() -> None:
    step_of(restarted())


@plants("kept-steps-are-unchanged")
def _kept_with_another_output() -> None:
    kept(restarted(), output=2)


@plants("kept-steps-are-unchanged")
def _kept_from_a_generation_without_it() -> None:
    step_of(restarted(), **{**ENDED, "generation": 2, "kept_from": 1})


@plants("kept-steps-come-first")
def _kept_after_what_runs_again() -> None:
    instance = restarted()
    kept(instance, 2)
    step_of(instance, 1, **{**ENDED, "generation": 2, "delivery": 2})


@plants("kept-steps-come-first")
def _kept_with_a_later_turn() -> None:
    instance = restarted()
    kept(instance, 1, delivery=2)
    step_of(instance, 2, **{**ENDED, "generation": 2})


@plants("waits-end-with-one-event")
def _kept_wait_without_its_event() -> None:
    instance = restarted()
    wait = {"kind": "event", "event_types": ["e"], **ENDED, "output": {"type": "e", "payload": {}}}
    step_of(instance, **wait)
    step_of(instance, **{**wait, "generation": 2, "kept_from": 1})


@plants("restarts-lose-no-event")
def _event_left_with_a_wait_that_was_wiped() -> None:
    instance = restarted(data={"generation": 2, "from_step": "s1", "kind": "event"})
    step_of(instance, **{**ENDED, "kind": "event", "event_types": ["e"], "attempts": 0})
    event_of(instance, state="consumed", consumed_by=1, consumed_generation=1)


@plants("restarts-are-audited")
def _restarted_by_nobody() -> None:
    generation_of(running(generation=2))


# Notices


@plants("failures-are-logged")
def _failure_that_nobody_told() -> None:
    Notice.objects.create(kind="attempt_lost", at=timezone.now() - timedelta(minutes=2))


# Search


def path_of(path: str) -> IndexedPath:
    return IndexedPath.objects.create(workflow="tick", path=path, is_complete=True)


def value_of(path: IndexedPath, text: str, **values: Any) -> None:
    SearchValue.objects.create(instance=row_of(**values), path=path, text=text)


@plants("search-values-are-current")
def _another_value() -> None:
    value_of(path_of("params.customer"), "b", params={"customer": "a"})


@plants("search-values-are-current")
def _number_as_a_text() -> None:
    value_of(path_of("params.total"), "7", params={"total": 7})


@plants("search-values-are-current")
def _value_of_an_object() -> None:
    value_of(path_of("params.customer"), "{}", params={"customer": {}})


@plants("search-values-are-current")
def _value_of_an_output_that_is_gone() -> None:
    value_of(path_of("output"), "1")


@plants("search-values-are-current")
def _value_at_no_path() -> None:
    path = path_of("params.customer")
    value_of(path, "a", params={"customer": "a"})
    path.delete()
    SearchValue.objects.create(instance=Instance.objects.get(), path_id=path.pk or 1, text="a")


@plants("complete-paths-lack-nothing")
def _value_that_is_missing() -> None:
    path_of("params.customer")
    row_of(params={"customer": {}})


# Failures


def failure_of(**values: Any) -> Failure:
    """Write a group whose fingerprint is right, unless it is given."""
    group = failed(ErrorRecord("Declined", "no"), workflow="tick", step="s1")
    given = {name: getattr(group, name) for name in group.__slots__}
    return Failure.objects.create(**{**given, "first_seen": NOW, "counted_to": NOW, **values})


def failed_attempt(group: Failure, **values: Any) -> Instance:
    instance = running()
    step_of(instance, attempts=1)
    ended = {"status": "errored", "finished_at": LATER, "failed_at": LATER, "error": {"type": "Declined"}}
    attempt_of(instance, **{**ended, "fingerprint": group.fingerprint, **values})
    return instance


@plants("failures-have-groups")
def _attempt_without_its_group() -> None:
    failed_attempt(Failure(fingerprint="0123456789abcdef"))


@plants("failures-have-groups")
def _instance_of_the_group_of_another_workflow() -> None:
    group = failure_of()
    row_of(workflow="nap", fingerprint=group.fingerprint)


@plants("failed-attempts-belong-to-their-group")
def _fingerprint_of_a_success() -> None:
    failed_attempt(failure_of(), status="complete", error=None)


@plants("failed-attempts-belong-to-their-group")
def _failure_at_another_time() -> None:
    failed_attempt(failure_of(), failed_at=NOW)


@plants("failed-attempts-belong-to-their-group")
def _failure_without_a_fingerprint() -> None:
    failed_attempt(failure_of(), fingerprint=None)


@plants("failed-attempts-belong-to-their-group")
def _failure_with_another_error() -> None:
    failed_attempt(failure_of(), error={"type": "Refused"})


@plants("released-in-a-pause-of-the-workflow")
def _released_by_the_pause_of_another_workflow() -> None:
    row_of(released_in=PauseRow.objects.create(workflow="other", paused_at=NOW).key)


@plants("failed-attempts-belong-to-their-group")
def _failure_of_another_phase() -> None:
    failed_attempt(failure_of(phase="rollback"))


@plants("fingerprints-are-computed")
def _fingerprint_of_another_message() -> None:
    failure_of(message="yes")


@plants("fingerprints-are-computed")
def _kin_of_another_error() -> None:
    failure_of(kin="0123456789abcdef")


@plants("failures-are-counted")
def _hour_that_lacks_a_failure() -> None:
    at = timezone.now().replace(minute=0, second=0, microsecond=0) - timedelta(days=1)
    moments = {"started_at": at, "finished_at": at, "failed_at": at}
    failed_attempt(failure_of(first_seen=at, counted_to=at + timedelta(hours=5)), **moments)


@plants("failures-are-counted")
def _count_of_no_group() -> None:
    FailureCount.objects.create(fingerprint="0123456789abcdef", hour=NOW, attempts=1)


@plants("failures-are-counted")
def _count_of_an_hour_that_is_not_over() -> None:
    FailureCount.objects.create(fingerprint=failure_of().fingerprint, hour=NOW, attempts=1)


@plants("starts-and-ends-are-counted")
def _start_without_a_count() -> None:
    row_of(created_at=timezone.now() + timedelta(minutes=1))  # nothing counts it: triggers are disabled


@plants("starts-and-ends-are-counted")
def _end_of_an_earlier_generation_without_a_count() -> None:
    restarted(finished_at=timezone.now() + timedelta(minutes=1))


@plants("starts-and-ends-are-counted")
def _count_that_is_negative() -> None:
    at = timezone.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    WorkflowCountDelta.objects.create(workflow="w", at=at, what="errored", bucket=1, amount=-1)


@plants("starts-and-ends-are-counted")
def _count_of_no_hour() -> None:
    named = {"workflow": "w", "what": "started", "bucket": -1}
    WorkflowCount.objects.create(unit="hour", at=NOW.replace(minute=5), amount=1, **named)


@plants("spans-are-counted")
def _end_that_is_not_in_the_span() -> None:
    at = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    WorkflowCount.objects.create(unit="day", at=at, workflow="w", what="complete", bucket=1, amount=1)


# Bulk jobs


def job_of(**values: Any) -> BulkJob:
    return BulkJob.objects.create(**{"id": "b", "action": "retry", "arguments": {}, "total": 1, **values})


def item_of(job: BulkJob, **values: Any) -> None:
    given = {"position": 1, "instance_key": 1, "workflow": "tick", "instance_id": "i", "generation": 1}
    BulkItem.objects.create(job=job, **{**given, **values})


@plants("bulk-jobs-count-their-items")
def _item_that_no_job_counts() -> None:
    item_of(job_of(), outcome="done", at=NOW)


@plants("bulk-jobs-count-their-items")
def _item_that_is_missing() -> None:
    job_of(done=1)


@plants("finished-bulk-jobs-have-nothing-open")
def _item_that_is_left_open() -> None:
    item_of(job_of(finished_at=timezone.now()))


@plants("bulk-items-have-their-instances")
def _item_that_is_done_without_an_instance() -> None:
    item_of(job_of(action="start", done=1), instance_key=None, outcome="done", at=NOW)


@plants("bulk-items-have-their-instances")
def _item_to_be_retried_without_an_instance() -> None:
    item_of(job_of(), instance_key=None)
