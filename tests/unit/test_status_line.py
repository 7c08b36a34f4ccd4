"""The status line: one true sentence for every state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.status.facts import Capacity, Hold, LastAction, OpenStep, Rollback, Servers, StatusFacts
from engine.status.sentences.sentence import Code, Moment, as_text
from engine.status.sentences.status_line import short_line, status_line

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
LATER = NOW + timedelta(hours=3)


def facts(status: str, **given: Any) -> StatusFacts:
    fields: dict[str, Any] = {
        "waiting_for": "",
        "workflow": "orders",
        "now": NOW,
        "created_at": NOW - timedelta(seconds=38),
        "servers": Servers(count=3, slots=192, held=12),
    }
    return StatusFacts(status=status, **(fields | given))


def step(**given: Any) -> OpenStep:
    fields: dict[str, Any] = {
        "seq": 4,
        "name": "charge_card",
        "kind": "do",
        "is_waiting": False,
        "started_at": NOW - timedelta(seconds=3),
        "max_attempts": 6,
        "attempts": 1,
    }
    return OpenStep(**(fields | given))


BACKING_OFF = step(is_waiting=True, attempts=3, wake_at=NOW + timedelta(seconds=12), error="TimeoutError")

FAILED = {"type": "LookupError", "message": "no such customer", "step": "find", "attempts": 2}


def undoing(state: str = "running", **given: Any) -> Rollback:
    return Rollback(**{"state": state, "ends_as": "errored", "undone": 1, "of": 3, "step": step(), **given})


CHILD = step(kind="child", name="bill", is_waiting=True, relative="inv-7", is_child=True, max_attempts=None)
OTHER = step(
    kind="child",
    name="bill",
    is_waiting=True,
    relative="inv-7",
    wake_at=NOW + timedelta(hours=1),
    max_attempts=None,
)
BRANCHES = step(kind="parallel", name="all", is_waiting=True, branches=3, left=3, max_attempts=None)
TWO_LEFT = step(kind="parallel", name="all", is_waiting=True, branches=3, left=2, max_attempts=None)
NONE_LEFT = step(kind="parallel", name="all", is_waiting=True, branches=3, max_attempts=None)

KIN = [
    (facts("waiting", steps=[CHILD]), "Waits for child “inv-7” at step 4 “bill”."),
    (
        facts("waiting", steps=[OTHER]),
        "Waits for instance “inv-7” at step 4 “bill” until 2026-11-21 15:03:00 UTC (in 1 h 00 m).",
    ),
    (facts("waiting", steps=[BRANCHES]), "Waits for 3 children at step 4 “all”."),
    (facts("waiting", steps=[TWO_LEFT]), "Waits for 2 of 3 children at step 4 “all”."),
    (facts("waiting", steps=[NONE_LEFT]), "Waits for its children at step 4 “all”."),
]


@pytest.mark.parametrize(("facts", "expected"), KIN)
def test_what_is_waited_for_among_other_instances_is_named(facts: StatusFacts, expected: str) -> None:
    assert as_text(status_line(facts), NOW) == expected
    assert as_text(short_line(facts), NOW).startswith("for ")


ROLLBACKS = [
    (
        facts("running", rollback=undoing(), error=FAILED),
        "Rolling back: step 4 “charge_card” runs for 3 s; 1 of 3 steps undone, then it is errored.",
    ),
    (
        facts("running", rollback=undoing(step=step(attempts=2), undone=0, of=1, ends_as="terminated")),
        (
            "Rolling back: step 4 “charge_card” runs for 3 s, attempt 2 of 6; "
            "0 of 1 step undone, then it is terminated."
        ),
    ),
    (
        facts("waiting", waiting_for="retry", rollback=undoing(step=BACKING_OFF), error=FAILED),
        (
            "Rolling back: step 4 “charge_card” could not be undone, attempt 3 of 6 · TimeoutError. "
            "Next attempt in 12 s; "
            "1 of 3 steps undone, then it is errored."
        ),
    ),
    (
        facts("paused", rollback=undoing(), error=FAILED, last_action=LastAction("li", NOW)),
        (
            "Paused by li 0 s ago. Nothing new starts, and timers stop, until it is resumed. "
            "It is being rolled back; 1 of 3 steps undone, then it is errored."
        ),
    ),
    (
        facts("errored", rollback=undoing("complete", undone=3, step=None), error=FAILED),
        "Failed at step “find” (after 2 attempts): LookupError: no such customer. Rolled back: 3 of 3 steps undone.",
    ),
    (
        facts("errored", rollback=undoing("failed", step=BACKING_OFF), error=FAILED),
        (
            "Failed at step “find” (after 2 attempts): LookupError: no such customer. "
            "The rollback failed at step 4 “charge_card” · TimeoutError. 1 of 3 steps undone."
        ),
    ),
    (
        facts(
            "terminated",
            rollback=undoing("complete", undone=3),
            last_action=LastAction("li", NOW),
            steps_complete=3,
        ),
        "Terminated by li 0 s ago. Rolled back: 3 of 3 steps undone.",
    ),
]

HOLD = Hold("ana", NOW - timedelta(hours=1), "the bank is down")
ASLEEP = step(kind="sleep", name="cool-down", is_waiting=True, wake_at=NOW + timedelta(hours=52))

HELD = [
    (
        facts("queued", hold=HOLD, servers=Servers(), capacity=Capacity(limit=5, held=5)),
        "Held: workflow “orders” is paused by ana since 2026-11-21 13:03:00 UTC: “the bank is down”.",
    ),
    (
        facts("queued", hold=Hold("", NOW)),
        "Held: workflow “orders” is paused by a program since 2026-11-21 14:03:00 UTC.",
    ),
    (
        facts("waiting", waiting_for="sleep", hold=HOLD, servers=Servers(), steps=[ASLEEP]),
        (
            "Sleeps at step 4 “cool-down” until 2026-11-23 18:03:00 UTC (in 2 d 4 h). "
            "Held: workflow “orders” is paused by ana since 2026-11-21 13:03:00 UTC: “the bank is down”."
        ),
    ),
    (
        facts("running", hold=HOLD, steps=[step()]),
        (
            "Step 4 “charge_card” runs for 3 s. After that, it is held: "
            "workflow “orders” is paused by ana since 2026-11-21 13:03:00 UTC: “the bank is down”."
        ),
    ),
    (
        facts("queued", hold=HOLD, rollback=undoing(ends_as="terminated")),
        (
            "Held: workflow “orders” is paused by ana since 2026-11-21 13:03:00 UTC: “the bank is down”. "
            "It is being rolled back; 1 of 3 steps undone, then it is terminated."
        ),
    ),
    (
        facts("paused", hold=HOLD, last_action=LastAction("li", NOW)),
        "Paused by li 0 s ago. Nothing new starts, and timers stop, until it is resumed.",
    ),
]

SENTENCES = [
    *HELD,
    *ROLLBACKS,
    (
        facts("queued", wake_at=NOW - timedelta(seconds=38)),
        "Waiting for a worker for 38 s. 3 workers serve “orders”, 12 of 192 slots busy.",
    ),
    (
        facts("queued", wake_at=LATER, starts_at=LATER),
        "Starts in 3 h 00 m (2026-11-21 17:03:00 UTC).",
    ),
    (
        facts("queued", wake_at=LATER, starts_at=LATER, servers=Servers()),
        "Starts in 3 h 00 m (2026-11-21 17:03:00 UTC). No worker serves “orders” now.",
    ),
    (
        facts(
            "queued", wake_at=LATER, starts_at=LATER, hold=Hold("ana", NOW, "stock-taking"), servers=Servers()
        ),
        (
            "Starts in 3 h 00 m (2026-11-21 17:03:00 UTC). It is held then: workflow “orders” is paused by ana since "
            "2026-11-21 14:03:00 UTC: “stock-taking”."
        ),
    ),
    (
        # Its time has come: it waits for a worker since then.
        facts("queued", wake_at=NOW - timedelta(seconds=38), starts_at=NOW - timedelta(seconds=38)),
        "Waiting for a worker for 38 s. 3 workers serve “orders”, 12 of 192 slots busy.",
    ),
    (
        facts("queued", servers=Servers(count=1, slots=64, held=64, is_full=True)),
        "Waiting for a worker for 38 s. 1 worker serves “orders”, all 64 slots busy.",
    ),
    (
        facts("queued", servers=Servers(is_starting=True)),
        "The workers of “orders” are starting. It has waited for 38 s and starts when one is available.",
    ),
    (
        facts("queued", capacity=Capacity(limit=5, held=5), wake_at=NOW - timedelta(seconds=38)),
        "Held back for 38 s: 5 of 5 “orders” run (max_running). It continues when one of them ends or waits.",
    ),
    (
        facts("queued", capacity=Capacity(limit=5, held=4)),
        "Waiting for a worker for 38 s. 3 workers serve “orders”, 12 of 192 slots busy.",
    ),
    (
        facts("queued", servers=Servers()),
        "No worker serves “orders”. It has waited for 38 s and starts when one is available.",
    ),
    (facts("running", steps=[step(worker="worker-2")]), "Step 4 “charge_card” runs on worker-2 for 3 s."),
    (
        facts("running", steps=[step(attempts=2), step(seq=5)]),
        "Step 5 “charge_card” runs for 3 s. 1 other step is also open.",
    ),
    (facts("running", steps=[step(attempts=2)]), "Step 4 “charge_card” runs for 3 s, attempt 2 of 6."),
    (facts("running"), "The handler runs; no step is open."),
    (
        facts("waiting", waiting_for="retry", steps=[BACKING_OFF]),
        "Step 4 “charge_card” failed 3 times · TimeoutError. Next attempt in 12 s (attempt 4 of 6).",
    ),
    (
        facts(
            "waiting",
            waiting_for="sleep",
            steps=[step(kind="sleep", name="cool-down", is_waiting=True, wake_at=NOW + timedelta(hours=52))],
        ),
        "Sleeps at step 4 “cool-down” until 2026-11-23 18:03:00 UTC (in 2 d 4 h).",
    ),
    (
        facts(
            "waiting",
            waiting_for="event",
            steps=[step(kind="event", is_waiting=True, event_types=("paid", "refused"))],
        ),
        "Waits for event “paid” or “refused” at step 4 “charge_card” without a time limit.",
    ),
    (
        facts(
            "waiting",
            waiting_for="event",
            servers=Servers(),
            steps=[step(kind="event", name="paid", is_waiting=True, wake_at=NOW + timedelta(hours=4))],
        ),
        (
            "Waits for event “paid” at step 4 “paid” until 2026-11-21 18:03:00 UTC (in 4 h 00 m)."
            " No worker serves “orders” now."
        ),
    ),
    (
        facts(
            "waiting_for_pause",
            steps=[step()],
            last_action=LastAction("li", NOW - timedelta(seconds=5), "provider down"),
        ),
        "Pausing by li 5 s ago: “provider down”: step 4 “charge_card” finishes first.",
    ),
    (
        facts("paused", last_action=LastAction("li", NOW - timedelta(minutes=10), "provider down")),
        (
            "Paused by li 10 m 00 s ago: “provider down”."
            " Nothing new starts, and timers stop, until it is resumed."
        ),
    ),
    (
        facts(
            "paused",
            last_action=LastAction("li", NOW - timedelta(days=9)),
            pause_reason={"type": "CodeChangedError"},
        ),
        "Paused by the engine: the code has changed since it started. Nothing runs until the new code is accepted.",
    ),
    (
        facts(
            "paused", last_action=LastAction("li", NOW - timedelta(minutes=1)), error={"type": "CardRefused"}
        ),
        "Paused by li 1 m 00 s ago. Nothing new starts, and timers stop, until it is resumed.",
    ),
    (
        facts("paused", pause_reason={"type": "NonDeterminismError", "message": "It does not fit."}),
        "Paused by the engine: NonDeterminismError: It does not fit.",
    ),
    (
        facts("complete", finished_at=NOW, began_at=NOW - timedelta(seconds=184), steps_complete=9),
        "Completed in 3 m 04 s with 9 steps.",
    ),
    (
        facts(
            "errored",
            finished_at=NOW,
            error={"type": "TimeoutError", "message": "no answer", "step": "charge_card", "attempts": 6},
        ),
        "Failed at step “charge_card” (after 6 attempts): TimeoutError: no answer",
    ),
    (
        facts(
            "terminated",
            finished_at=NOW,
            steps_complete=3,
            last_action=LastAction("li", NOW - timedelta(seconds=9), "duplicate"),
        ),
        "Terminated by li 9 s ago: “duplicate”. 3 finished steps stay done.",
    ),
    (
        facts("terminated", finished_at=NOW, error={"type": "Aborted", "message": "nothing to do"}),
        "The workflow ended itself: nothing to do.",
    ),
]


@pytest.mark.parametrize(("facts", "expected"), SENTENCES, ids=[text[:40] for _, text in SENTENCES])
def test_each_state_has_its_sentence(facts: StatusFacts, expected: str) -> None:
    assert as_text(status_line(facts), NOW) == expected


def test_names_and_times_are_parts_of_their_own_so_that_the_page_escapes_and_ticks_them() -> None:
    sentence = status_line(facts("waiting", waiting_for="retry", steps=[BACKING_OFF]))
    assert Code("charge_card") in sentence
    assert Moment("until", NOW + timedelta(seconds=12)) in sentence


def test_attempts_lost_with_a_worker_do_not_count_against_the_number_of_attempts() -> None:
    lost_two = step(attempts=3, lost=2, uncounted=2)
    said = as_text(status_line(facts("running", steps=[lost_two])), NOW)
    assert said.endswith("runs for 3 s, attempt 1 of 6, not counting 2 lost.")
    again = step(attempts=4, lost=2, uncounted=3, is_waiting=True, wake_at=NOW + timedelta(seconds=12))
    said = as_text(status_line(facts("waiting", waiting_for="retry", steps=[again])), NOW)
    assert said == (
        "Step 4 “charge_card” failed once. Next attempt in 12 s (attempt 2 of 6, not counting 2 lost)."
    )


def test_a_body_that_runs_is_spoken_of_before_a_wait_beside_it() -> None:
    waiting = step(seq=9, kind="event", is_waiting=True)
    text = as_text(status_line(facts("running", steps=[step(), waiting])), NOW)
    assert text == "Step 4 “charge_card” runs for 3 s. 1 other step is also open."


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (facts("queued", servers=Servers()), "no worker serves it"),
        (facts("queued", starts_at=LATER, hold=HOLD), "starts in 3 h 00 m"),
        (facts("queued", servers=Servers(is_starting=True)), "its workers are starting"),
        (facts("queued", capacity=Capacity(limit=5, held=5)), "held back: 5 of 5 run"),
        (facts("queued", capacity=Capacity(limit=5, held=4)), "waits for a worker"),
        (facts("queued", hold=HOLD, servers=Servers()), "held: workflow paused"),
        (
            facts("waiting", waiting_for="sleep", hold=HOLD, steps=[ASLEEP]),
            "held: workflow paused · until 2026-11-23 18:03:00 UTC · “cool-down”",
        ),
        (facts("waiting", hold=HOLD), "held: workflow paused"),
        (facts("running", hold=HOLD, steps=[step(attempts=2)]), "“charge_card” · attempt 2"),
        (facts("running", steps=[step(attempts=2)]), "“charge_card” · attempt 2"),
        (
            facts("waiting", waiting_for="retry", steps=[BACKING_OFF]),
            "attempt 4 of 6 in 12 s · “charge_card” · TimeoutError",
        ),
        (facts("paused", last_action=LastAction("", NOW)), "by a program"),
        (facts("errored", error={"type": "ValueError"}), "ValueError"),
        (facts("errored", error={"type": "WorkflowFailed", "message": "No stock."}), "No stock."),
        (facts("complete"), ""),
    ],
)
def test_a_row_says_it_in_a_few_words(facts: StatusFacts, expected: str) -> None:
    assert as_text(short_line(facts), NOW) == expected
