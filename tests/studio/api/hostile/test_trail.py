"""Each change by a program leaves one row in the audit trail, with the name of its token; reading leaves none."""

from __future__ import annotations

import pytest

from tests.studio import factories
from tests.studio.api.conftest import Programs, trail
from tests.studio.api.hostile.values import INSTANCES

BECAUSE = {"reason": "why not"}
# By its verb: the status of the instance before, the address below it, the body, and the status of the answer.
CHANGES = {
    "pause": ("queued", "/pause", BECAUSE, 200),
    "resume": ("paused", "/resume", BECAUSE, 200),
    "terminate": ("waiting", "/terminate", BECAUSE, 200),
    "restart": ("complete", "/restart", BECAUSE, 200),
    "send_event": ("waiting", "/events", {**BECAUSE, "type": "go"}, 202),
}


@pytest.mark.parametrize("is_repeated", [False, True])
@pytest.mark.parametrize("verb", CHANGES)
@pytest.mark.parametrize("role", ["operator", None])
def test_a_change_leaves_one_row(
    program_of: Programs, role: str | None, verb: str, is_repeated: bool
) -> None:
    status, path, body, expected = CHANGES[verb]
    instance = factories.instance(status, workflow="sink")
    program, before = program_of(role), set(trail().values_list("key", flat=True))
    for _ in range(1 + is_repeated):
        answer = program.post(f"{INSTANCES}/{instance.id}{path}", body, Idempotency_Key="once")
        assert answer.status_code == expected
    [row] = trail().exclude(key__in=before)
    assert (row.verb, row.outcome, row.reason) == (verb, "done", "why not")
    assert (row.workflow, row.instance_id, row.before) == ("sink", instance.id, status)
    assert row.actor.endswith("token:ci)" if role else "token:ci")
    assert (row.user_key == "") == (role is None)


def test_a_start_and_a_batch_leave_one_row_for_each_instance(program_of: Programs) -> None:
    program = program_of(None)
    assert program.post(INSTANCES, {"id": "a", **BECAUSE}).status_code == 201
    items = [{"id": "b"}, {"id": "a"}, {"id": "-"}, {"id": "c"}]
    assert program.post(f"{INSTANCES}/batch", {"items": items, **BECAUSE}).status_code == 200
    rows = trail().values_list("verb", "instance_id", "actor", "reason")
    assert sorted(rows) == [("start", one, "token:ci", "why not") for one in ("a", "b", "c")]


@pytest.mark.parametrize("verb", CHANGES)
def test_a_denied_change_leaves_one_row_also_with_a_key(program_of: Programs, verb: str) -> None:
    status, path, body, _ = CHANGES[verb]
    instance = factories.instance(status, workflow="sink")
    program, before = program_of("viewer"), set(trail().values_list("key", flat=True))
    answer = program.post(f"{INSTANCES}/{instance.id}{path}", body, Idempotency_Key="once")
    assert answer.status_code == 403
    [row] = trail().exclude(key__in=before)
    assert (row.verb, row.outcome, row.instance_id) == (verb, "denied", instance.id)
    assert row.actor.endswith("(token:ci)")


def test_what_is_refused_or_only_read_leaves_no_row(program_of: Programs) -> None:
    program, instance = program_of(), factories.instance("complete", workflow="sink")
    for path in ("", "/steps", "/events", "/audit", "/logs", "/payloads/params"):
        assert program.get(f"{INSTANCES}/{instance.id}{path}").status_code == 200
    for path, body in (
        ("/pause", {}),
        ("/events", {"type": "go"}),
        ("/terminate", BECAUSE),
        ("/restart", {}),
    ):
        assert program.post(f"{INSTANCES}/{instance.id}{path}", body).status_code in (200, 409, 422)
    assert not trail().exists()
