"""The protocol with one of its guards taken out: what the simulation must notice."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from engine.replay.attempts.bodies import DoOperation
from engine.replay.calls import phases
from engine.replay.calls.call import Call
from engine.replay.calls.deliveries import Deliveries
from engine.replay.cycle import Cycle
from engine.replay.exit.exit import Exit
from engine.replay.host import Phase
from engine.replay.operations.waits import WaitOperation
from engine.replay.records.history import AttemptRecord, Page, StepRecord
from engine.replay.records.writes import Writes
from engine.replay.state import CycleState
from engine.replay.waiting.timers import Timers
from engine.steer import sql as calls
from engine.steer import transitions
from engine.worker import cycle_host
from engine.worker.bodies import attempt
from engine.worker.claims import Claimer
from engine.worker.database import claim_sql, flush_sql, history_sql, lost_answers, rows, sql
from engine.worker.database.journal import Journal
from engine.worker.database.reader import Reader
from tests.hand.worker import HandShift

Patch = pytest.MonkeyPatch
Change = Callable[[Patch], None]
MUTANTS: dict[str, tuple[Change, str]] = {}


def mutant(tale: str) -> Callable[[Change], Change]:
    """Name the tale that kills the mutant."""

    def keep(change: Change) -> Change:
        MUTANTS[change.__name__] = change, tale
        return change

    return keep


def rewrite(patch: Patch, statement: str, old: str, new: str, *, of: ModuleType = flush_sql) -> None:
    """Change a statement; the guard must be there to be taken out."""
    text = getattr(of, statement)
    assert old in text, f"{statement} has no {old!r} any more"
    patch.setattr(of, statement, text.replace(old, new))
    if statement == "FLUSH":
        patch.setattr(of, "FLUSH_STEPS", flush_sql.FLUSH_STEPS.replace(old, new))


OURS = "(i.fence = c.fence AND i.owner IS NOT DISTINCT FROM %(worker_id)s::integer)"
ANY_WORKER = "%(worker_id)s::integer IS NOT NULL"


# Fences


@mutant("zombie_writes_after_another_worker_has_taken_over")
def no_fence(patch: Patch) -> None:
    rewrite(patch, "FLUSH", OURS, f"({ANY_WORKER})")


@mutant("flush_is_sent_after_its_worker_has_claimed_again")
def fence_by_owner_only(patch: Patch) -> None:
    """The same worker may have claimed the instance again."""
    rewrite(patch, "FLUSH", OURS, "(i.owner IS NOT DISTINCT FROM %(worker_id)s::integer)")


@mutant("zombie_writes_before_anybody_has_taken_over")
def fence_without_owner(patch: Patch) -> None:
    """Nobody has claimed the instance yet since it was taken back."""
    rewrite(patch, "FLUSH", OURS, f"(i.fence = c.fence AND {ANY_WORKER})")


@mutant("worker_claims_again_what_it_lost_and_does_not_know_it")
def claim_keeps_the_fence(patch: Patch) -> None:
    for statement in ("CLAIM", "CLAIM_QUARANTINED"):
        rewrite(patch, statement, "fence = i.fence + 1", "fence = 1", of=claim_sql)


@mutant("worker_writes_after_its_instance_was_terminated")
def terminate_without_fence(patch: Patch) -> None:
    """And without the owner, which alone would do."""
    fence_without_owner(patch)
    rewrite(patch, "END", "fence = i.fence + 1", "fence = i.fence", of=transitions)


@mutant("worker_writes_after_its_instance_was_restarted")
def restart_without_fence(patch: Patch) -> None:
    """What ended the last generation has raised the fence, too."""
    terminate_without_fence(patch)
    rewrite(patch, "NEXT_GENERATION", "fence = i.fence + 1", "fence = i.fence", of=calls)


@mutant("old_body_ends_beside_that_of_the_new_generation")
def bodies_of_all_generations_have_one_key(patch: Patch) -> None:
    def without_fence(cycle: Cycle, attempt: Any) -> Any:
        return cycle.claimed.key, 0, attempt.step_seq, attempt.phase, attempt.number

    patch.setattr(attempt, "_key", without_fence)


@mutant("answer_to_a_parking_comes_in_the_next_stay")
def late_answer_forgets_the_alarm(patch: Patch) -> None:
    def careless(self: HandShift, cycles: list[Cycle]) -> None:
        left = {cycle.claimed.key for cycle in cycles if cycle.phase is Phase.LEFT}
        for cycle in [one for one in self._host._alarms if one.claimed.key in left]:
            self._host._forget_alarm(cycle)

    patch.setattr(HandShift, "_on_written", careless)


@mutant("instance_is_restarted_from_a_step_and_another_worker_takes_it")
def restart_loses_what_was_consumed(patch: Patch) -> None:
    """The events of waits that run again stay with the last generation, and the youngest would go first."""
    rewrite(patch, "RETURN_EVENTS", "WHERE s.instance_id", "WHERE e.key > 1 AND s.instance_id", of=calls)


# Claims and leases


@mutant("sender_holds_the_row_that_is_to_be_claimed")
def claim_waits_for_locks(patch: Patch) -> None:
    rewrite(patch, "CLAIM", "FOR NO KEY UPDATE SKIP LOCKED", "FOR NO KEY UPDATE", of=claim_sql)


@mutant("sender_holds_the_row_that_is_to_be_claimed")
def claim_takes_no_lock(patch: Patch) -> None:
    rewrite(patch, "CLAIM", "FOR NO KEY UPDATE SKIP LOCKED", "", of=claim_sql)


@mutant("lease_runs_out_and_nobody_sweeps")
def claim_takes_what_is_held(patch: Patch) -> None:
    for statement in ("CLAIM", "CLAIM_QUARANTINED"):
        rewrite(patch, statement, "AND i.owner IS NULL", "", of=claim_sql)


@mutant("sender_holds_the_row_that_is_to_be_written")
def flush_waits_for_locks(patch: Patch) -> None:
    rewrite(patch, "FLUSH", "FOR NO KEY UPDATE OF i SKIP LOCKED", "FOR NO KEY UPDATE OF i")


@mutant("worker_is_killed_in_a_body")
def reap_nothing(patch: Patch) -> None:
    rewrite(patch, "REAP", "WHERE owner IS NOT NULL", "WHERE owner IS NULL AND owner IS NOT NULL", of=sql)


@mutant("worker_sweeps_beside_a_living_one")
def reap_the_living(patch: Patch) -> None:
    rewrite(patch, "REAP", "AND (owner <> ALL", "AND (true OR owner <> ALL", of=sql)


@mutant("worker_is_killed_while_its_instance_is_to_pause")
def reap_forgets_the_pause(patch: Patch) -> None:
    rewrite(patch, "REAP", "status = 'waiting_for_pause'", "status = ''", of=sql)


@mutant("old_stay_flushes_while_the_new_one_waits_for_its_turn")
def old_stay_is_kept(patch: Patch) -> None:
    take = Claimer.take

    def forgetful(self: Claimer, found: Any) -> None:
        for claimed, _ in found:
            self._host.cycles.pop(claimed.key, None)
        take(self, found)

    patch.setattr(Claimer, "take", forgetful)


# Parking, events and time


@mutant("event_comes_while_the_instance_parks")
def park_ignores_signals(patch: Patch) -> None:
    rewrite(patch, "FLUSH", "(l.signals IS NULL OR l.signals = o.signals)", "true")


@mutant("event_comes_while_the_instance_parks")
def refused_parking_counts_as_left(patch: Patch) -> None:
    answered = Exit.answered
    patch.setattr(Exit, "answered", lambda *answer, has_left: answered(*answer, has_left=True))


@mutant("event_comes_while_the_instance_is_parked")
def send_without_wake(patch: Patch) -> None:
    rewrite(
        patch,
        "SEND",
        "CASE WHEN i.key IN (SELECT key FROM woken) THEN clock_timestamp() ELSE i.wake_at END",
        "i.wake_at",
        of=calls,
    )


@mutant("event_comes_while_the_instance_is_parked")
def send_wakes_for_no_wait(patch: Patch) -> None:
    rewrite(patch, "SEND", "%(type)s = ANY (s.event_types)", "false AND %(type)s = ''", of=calls)


@mutant("event_comes_while_the_instance_parks")
def send_without_signal(patch: Patch) -> None:
    rewrite(patch, "SEND", "signals = i.signals + 1", "signals = i.signals", of=calls)


@mutant("event_comes_while_the_instance_is_parked")
def event_consumed_not_marked(patch: Patch) -> None:
    rewrite(patch, "FLUSH", "WHERE e.key = c.event AND", "WHERE e.key = -c.event AND")


@mutant("event_comes_after_a_time_out_and_before_the_next_wait_is_recorded")
def timeout_keeps_waiter(patch: Patch) -> None:
    expire = WaitOperation.expire

    def keeping(self: WaitOperation) -> None:
        expire(self)
        if self.record.is_final:
            self.cycle.waits.add(self)

    patch.setattr(WaitOperation, "expire", keeping)


@mutant("event_comes_in_time_and_its_worker_is_not_told")
def timeout_without_looking(patch: Patch) -> None:
    expire = WaitOperation.expire

    def blind(self: WaitOperation) -> None:
        events = self.cycle.events
        events.as_of_us = max(events.as_of_us, self.record.wake_us or 0)
        expire(self)

    patch.setattr(WaitOperation, "expire", blind)


@mutant("event_comes_after_a_claim_whose_answer_is_slow")
def claim_is_taken_for_later_than_it_was(patch: Patch) -> None:
    histories = Reader._histories

    async def later(self: Reader, claims: Any, as_of_us: int) -> Any:
        return await histories(self, claims, self._clock.due_us())

    patch.setattr(Reader, "_histories", later)


@mutant("event_comes_behind_a_page_of_others")
def one_page_is_all(patch: Patch) -> None:
    pages = rows.pages

    def cut(*args: Any, **limits: Any) -> dict[int, Page]:
        found = pages(*args, **limits)
        return {key: Page(page.events, args[2]) for key, page in found.items()}

    patch.setattr(rows, "pages", cut)


@mutant("look_for_events_is_refused")
def failed_look_is_not_repeated(patch: Patch) -> None:
    patch.setattr(cycle_host, "ASK_AGAIN_SECONDS", 1e9)


@mutant("body_ends_shortly_before_a_sleep")
def timers_fire_early(patch: Patch) -> None:
    due = Timers.due
    patch.setattr(Timers, "due", lambda self, now_us: due(self, now_us + 2_000_000))


# Pausing


@mutant("pause_comes_before_the_next_step_is_recorded")
def pause_not_seen(patch: Patch) -> None:
    rewrite(patch, "FLUSH", "status = 'waiting_for_pause' AND NOT ends AS is_pausing", "false AS is_pausing")


@mutant("pause_comes_before_the_end_of_a_handler_that_leaves_a_step_open")
def end_leaves_out_what_began(patch: Patch) -> None:
    rewrite(patch, "FLUSH", "AND NOT ends AS is_pausing", "AS is_pausing")


@mutant("pause_comes_before_the_next_step_is_recorded")
def steps_begin_while_pausing(patch: Patch) -> None:
    rewrite(patch, "FLUSH", flush_sql._goes_on("s"), "true")


@mutant("pause_comes_before_the_next_step_is_recorded")
def attempts_begin_while_pausing(patch: Patch) -> None:
    rewrite(patch, "FLUSH", flush_sql._goes_on("a"), "true")


@mutant("worker_stops_before_a_retry_is_recorded_that_a_pause_leaves_out")
def cancelled_start_is_recorded_without_its_step(patch: Patch) -> None:
    started = DoOperation._started

    def forgetful(self: DoOperation, attempt: AttemptRecord, *, left_out: bool) -> None:
        if self.attempt is attempt:
            started(self, attempt, left_out=left_out)

    patch.setattr(DoOperation, "_started", forgetful)


@mutant("pause_comes_before_a_lost_attempt_is_recorded")
def loss_is_recorded_without_its_step(patch: Patch) -> None:
    patch.setattr(
        rows,
        "_belongs_to_a_start",
        lambda attempt, begun: (
            attempt.status == "running" or (begun is not None and attempt.number == begun.attempts)
        ),
    )


@mutant("pause_comes_before_a_step_that_is_complete_at_once_is_recorded")
def pause_leaves_out_what_the_handler_has_got(patch: Patch) -> None:
    settle_starts = Writes.settle_starts

    def all_of_them(self: Writes) -> dict[int, StepRecord]:
        new = {seq: record for seq, record in self.steps.items() if not record.is_recorded}
        starting = settle_starts(self) | new
        self.starts = set(starting)
        return starting

    patch.setattr(Writes, "settle_starts", all_of_them)


@mutant("pause_is_withdrawn_while_the_instance_leaves")
def pause_after_it_was_withdrawn(patch: Patch) -> None:
    rewrite(patch, "FLUSH", "AND (l.status <> 'paused' OR o.is_pausing OR l.pause_reason IS NOT NULL)", "")


@mutant("worker_stops_while_its_instance_is_to_pause")
def give_back_forgets_the_pause(patch: Patch) -> None:
    rewrite(patch, "FLUSH", "WHEN l.status = 'queued' AND o.is_pausing THEN 'paused'", "WHEN false THEN ''")


@mutant("sleeper_is_paused_and_resumed")
def resume_without_wake(patch: Patch) -> None:
    rewrite(
        patch,
        "RESUME",
        "wake_at = greatest(clock_timestamp(), i.starts_at)",
        "wake_at = i.wake_at",
        of=transitions,
    )


@mutant("sleeper_is_paused_and_resumed")
def resume_shifts_nothing(patch: Patch) -> None:
    rewrite(patch, "RESUME", "s.wake_at + (statement_timestamp() - r.paused_at)", "s.wake_at", of=transitions)


@mutant("database_refuses_the_end_too")
def what_is_given_up_is_kept(patch: Patch) -> None:
    async def keep(self: Reader, strays: Any) -> list[int]:
        return []

    patch.setattr(Reader, "let_go", keep)


@mutant("connection_breaks_while_an_instance_is_driven")
def what_is_driven_is_let_go(patch: Patch) -> None:
    let_go = Claimer.let_go

    async def everything(self: Claimer, strays: Any) -> None:
        await let_go(self, {key: cycle.claimed.fence for key, cycle in self._host.cycles.items()})

    patch.setattr(Claimer, "let_go", everything)


# Broken connections


@mutant("connection_breaks_after_a_claim")
def claim_without_an_answer_is_kept(patch: Patch) -> None:
    what_is_given_up_is_kept(patch)


@mutant("connection_breaks_after_a_step_was_started_and_a_pause_comes")
def starts_are_forgotten_with_the_answer(patch: Patch) -> None:
    rewrite(patch, "RECORDED", "AND s.attempts >= b.attempts", "AND s.attempts < 0")


@mutant("connection_breaks_after_a_body_has_ended")
def lines_are_written_again(patch: Patch) -> None:
    rewrite(patch, "RECORDED", "AND l.message = b.message", "AND false")


@mutant("connection_breaks_after_a_pause_has_left_out_a_start")
def every_start_counts_as_recorded(patch: Patch) -> None:
    settle = lost_answers.settle

    def trusting(writes: Any, *, has_starts: bool, has_lines: bool) -> None:
        settle(writes, has_starts=True, has_lines=has_lines)

    patch.setattr(lost_answers, "settle", trusting)


@mutant("connection_breaks_before_a_start_is_recorded")
def flush_is_not_written_again(patch: Patch) -> None:
    async def forget(self: Journal, batch: Any, error: Any) -> None:
        await self._connection.reopen()

    patch.setattr(Journal, "_write_again", forget)


# Steps and their attempts


@mutant("worker_is_killed_in_a_body")
def late_attempt_record(patch: Patch) -> None:
    """A body starts before its attempt is committed."""
    start = DoOperation.start

    def at_once(self: DoOperation) -> None:
        start(self)
        if self.attempt is not None:
            self._run(self.attempt)

    patch.setattr(DoOperation, "start", at_once)
    patch.setattr(DoOperation, "_started", lambda *_, **__: None)


@mutant("losing_branch_of_a_race_ends_late")
def late_result_counts(patch: Patch) -> None:
    settle = DoOperation.settle

    def trusting(self: DoOperation, attempt: AttemptRecord, **outcome: Any) -> None:
        self.cycle.steps.enter(self, phases.RUNNING)
        self.attempt = attempt
        settle(self, attempt, **outcome)

    patch.setattr(DoOperation, "settle", trusting)


@mutant("instance_parks_between_steps")
def completed_steps_are_forgotten(patch: Patch) -> None:
    rewrite(
        patch,
        "HISTORY_STEPS",
        "ORDER BY s.instance_id",
        "WHERE s.status <> 'complete' ORDER BY s.instance_id",
        of=history_sql,
    )


@mutant("worker_is_killed_in_a_body")
def lost_attempts_are_forgotten(patch: Patch) -> None:
    rewrite(
        patch,
        "HISTORY_ATTEMPTS",
        "AND a.step_seq = s.seq",
        "AND a.step_seq = s.seq AND a.status <> 'running'",
        of=history_sql,
    )


@mutant("instance_parks_between_steps")
def every_outcome_is_the_first(patch: Patch) -> None:
    conclude = CycleState.conclude

    def first(self: CycleState, operation: Any, **outcome: Any) -> None:
        conclude(self, operation, **outcome)
        operation.record.delivery = 1

    patch.setattr(CycleState, "conclude", first)


@mutant("branches_end_in_another_order_than_they_began")
def replay_in_order_of_start(patch: Patch) -> None:
    def by_start(self: Deliveries) -> Call | None:
        if not self._recorded:
            return None
        first = min(self._recorded, key=lambda entry: entry[2].record.seq)
        self._recorded.remove(first)
        return first[2]

    patch.setattr(Deliveries, "take_recorded", by_start)


@mutant("database_refuses_what_a_wait_has_received")
def what_is_refused_is_forgotten(patch: Patch) -> None:
    async def split(self: Journal, batch: Any, error: Any) -> None:
        for cycle, _ in batch:
            cycle.recover(error)

    patch.setattr(Journal, "_split", split)
