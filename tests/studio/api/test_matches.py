"""If-Match: an action that is meant for a state which the instance has left is refused."""

from __future__ import annotations

import json

import pytest

from engine.models import Instance
from tests.integration.sessions import in_background, until_blocked
from tests.sample.workflows import tick
from tests.studio.api.conftest import Program

ACTIONS = (
    "pause",
    "resume",
    "terminate",
    "retry-now",
    "wake-now",
    "retry-rollback",
    "accept-code",
    "restart",
    "retry-step",
    "fail-step",
    "skip-step",
)


def of(instance: Instance) -> str:
    return f"/workflows/tick/instances/{instance.id}"


@pytest.mark.django_db
class TestIfMatch:
    def test_acts_on_the_state_that_was_read(self, program: Program) -> None:
        instance = tick.start()
        tag = program.get(of(instance))["ETag"]
        paused = program.post(f"{of(instance)}/pause", If_Match=tag)
        assert paused.status_code == 200
        assert paused["ETag"] != tag
        assert program.post(f"{of(instance)}/resume", If_Match=paused["ETag"]).status_code == 200

    @pytest.mark.parametrize("action", ACTIONS)
    def test_refuses_another_state(self, program: Program, action: str) -> None:
        instance = tick.start()
        body = {"reason": "x"} | ({"step": "x"} if action in ("fail-step", "skip-step") else {})
        answer = program.post(f"{of(instance)}/{action}", body, If_Match='"1.0.paused.."')
        assert (answer.status_code, json.loads(answer.content)["code"]) == (412, "stale")
        assert answer["ETag"] == program.get(of(instance))["ETag"]
        assert instance.refresh().status == "queued"

    def test_refuses_a_deletion(self, program: Program) -> None:
        instance = tick.start()
        tag = program.get(of(instance))["ETag"]
        instance.terminate()
        answer = program.send("DELETE", of(instance), {"reason": "x"}, If_Match=tag)
        assert answer.status_code == 412
        assert (
            program.send("DELETE", of(instance), {"reason": "x"}, If_Match=answer["ETag"]).status_code == 200
        )

    @pytest.mark.parametrize(
        ("given", "status"),
        [
            ("*", 200),
            (" * ", 200),
            ('"other", {tag}', 200),
            ('{tag} ,"other"', 200),
            ("W/{tag}", 200),  # what compression on the way makes of it
            ('"other"', 412),
            ("{bare}", 412),
            ("", 412),
        ],
    )
    def test_takes_lists_and_stars(self, program: Program, given: str, status: int) -> None:
        instance = tick.start()
        tag = program.get(of(instance))["ETag"]
        header = given.format(tag=tag, bare=tag.strip('"'))
        assert program.post(f"{of(instance)}/pause", If_Match=header).status_code == status

    def test_nothing_matches_what_does_not_exist(self, program: Program) -> None:
        assert program.post("/workflows/tick/instances/nothing/pause", If_Match="*").status_code == 404

    def test_each_change_has_another_tag(self, program: Program) -> None:
        instance = tick.start()
        tags = [program.get(of(instance))["ETag"]]
        for action in ("pause", "resume", "pause", "resume", "terminate", "restart", "terminate", "restart"):
            answer = program.post(f"{of(instance)}/{action}", {"reason": "x"})
            tags.append(answer["ETag"])
            assert program.get(of(instance))["ETag"] == tags[-1]
        assert len(set(tags)) == len(tags)


@pytest.mark.usefixtures("engine_db")
def test_of_two_at_once_one_is_stale(program: Program) -> None:
    """The row is locked before the tags are compared."""
    from django.db import transaction

    instance = tick.start()
    tag = program.get(of(instance))["ETag"]
    with transaction.atomic():
        Instance.objects.select_for_update().get(key=instance.key)
        late = in_background(lambda: program.post(f"{of(instance)}/terminate", {"reason": "x"}, If_Match=tag))
        until_blocked()
        instance.pause()
    answer = late()
    assert not isinstance(answer, Exception)
    assert answer.status_code == 412
    assert instance.refresh().status == "paused"
