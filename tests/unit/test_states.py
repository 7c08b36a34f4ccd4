"""The transitions of an instance, as data."""

import pytest

from engine.values.states import ACTIONS, CHANGES, FINAL, Action, InstanceStatus, allows

S = InstanceStatus
TRANSITIONS = {one: {after for before, after in CHANGES if before == one} for one in S}


def test_every_status_has_its_transitions():
    assert set(TRANSITIONS) == set(S)
    assert {S.COMPLETE, S.ERRORED, S.TERMINATED} == FINAL


@pytest.mark.parametrize("status", sorted(FINAL))
def test_a_final_status_is_left_only_for_the_queue(status):
    assert TRANSITIONS[status] == {S.QUEUED}


def test_no_status_leads_to_itself():
    assert [status for status in S if status in TRANSITIONS[status]] == []


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [
        ("queued", "running", True),
        ("queued", "waiting", False),
        ("running", "waiting", True),
        ("running", "waiting_for_pause", True),
        ("waiting", "paused", True),
        ("waiting", "waiting_for_pause", False),
        ("waiting", "complete", False),
        ("waiting_for_pause", "running", True),
        ("waiting_for_pause", "waiting", False),
        ("paused", "queued", True),
        ("paused", "running", False),
        ("paused", "terminated", True),
        ("complete", "errored", False),
    ],
)
def test_transition(before, after, answer):
    assert (S(after) in TRANSITIONS[S(before)]) is answer


@pytest.mark.parametrize(
    ("action", "statuses"),
    [
        ("pause", {"queued", "running", "waiting"}),
        ("resume", {"paused", "waiting_for_pause"}),
        ("terminate", {"queued", "running", "waiting", "waiting_for_pause", "paused"}),
        ("send_event", {"queued", "running", "waiting", "waiting_for_pause", "paused"}),
        ("accept_code", {"queued", "running", "waiting", "waiting_for_pause", "paused"}),
        ("retry_rollback", {"errored", "terminated"}),
        ("retry_step", {"errored", "paused"}),
        ("fail_step", {"paused"}),
        ("skip_step", {"paused", "waiting"}),
        ("retry_now", {"queued", "running", "waiting"}),
        ("wake_now", {"queued", "running", "waiting"}),
    ],
)
def test_an_action_has_an_effect_in_these_statuses(action, statuses):
    """CF-61, CF-67: a pause of what waits is possible; of what is final, nothing is."""
    assert {str(status) for status in S if allows(action, status)} == statuses


def test_an_action_always_has_a_transition_to_take():
    targets = {Action.PAUSE: {S.PAUSED, S.WAITING_FOR_PAUSE}, Action.TERMINATE: {S.TERMINATED}}
    targets[Action.RESUME] = {S.QUEUED, S.RUNNING}
    targets[Action.RETRY_ROLLBACK] = {S.QUEUED}
    for action, reached in targets.items():
        for status in ACTIONS[action]:
            assert TRANSITIONS[status] & reached, (action, status)


def test_an_unknown_status_is_refused():
    with pytest.raises(ValueError, match="'done' is not a valid InstanceStatus"):
        allows("pause", "done")
