"""When a cluster does what it does by the clock."""

from __future__ import annotations

import pytest

from engine.worker.agenda import (
    AGAIN_SECONDS,
    BEGIN_AGAIN_SECONDS,
    LONGEST_PAUSE,
    MARGIN_SECONDS,
    NEVER,
    Agenda,
    Chore,
)

NOW = 1_000.0


@pytest.fixture
def agenda() -> Agenda:
    """One that has begun."""
    made = Agenda(is_kept=True, is_default=True)
    assert made.next_at < 0
    assert made.take(NOW) is Chore.BEGIN
    return made


def test_the_beginning_is_repeated_now_and_then_and_with_the_database(agenda: Agenda) -> None:
    assert agenda.next_at == NOW + BEGIN_AGAIN_SECONDS
    agenda.begin()
    assert (agenda.next_at < 0, agenda.take(NOW + 1)) == (True, Chore.BEGIN)


def test_a_look_comes_when_the_next_schedule_is_due(agenda: Agenda) -> None:
    agenda.plan(3.0, NOW)
    assert agenda.next_at == NOW + 3 + MARGIN_SECONDS
    assert agenda.take(NOW + 4) is Chore.LOOK
    assert agenda.next_at == NOW + BEGIN_AGAIN_SECONDS


def test_what_stays_due_is_looked_for_each_second_and_then_seldom(agenda: Agenda) -> None:
    agenda.take(NOW)
    agenda.plan(-0.5, NOW + 0.5)
    assert agenda.next_at == NOW + AGAIN_SECONDS
    agenda.plan(-11.0, NOW + 11)
    assert agenda.next_at == NOW + LONGEST_PAUSE


def test_nothing_is_planned_where_no_schedule_is(agenda: Agenda) -> None:
    agenda.plan(1.0, NOW)
    agenda.plan(None, NOW)
    assert agenda.next_at == NOW + BEGIN_AGAIN_SECONDS


def test_with_every_worker_busy_it_waits_a_moment(agenda: Agenda) -> None:
    agenda.plan(0.0, NOW)
    agenda.put_off(NOW + 1)
    assert NOW + 1 < agenda.next_at < NOW + 1.5


def test_a_cluster_that_is_to_run_no_schedules_does_none_of_it() -> None:
    agenda = Agenda(is_kept=False, is_default=True)
    agenda.plan(-5.0, NOW)
    agenda.put_off(NOW)
    agenda.begin()
    assert agenda.next_at == NEVER
