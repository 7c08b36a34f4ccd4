"""Every golden history takes the recorded way to the recorded end, without a database."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
from django.conf import LazySettings

from engine import WorkflowStep, workflow, workflows
from engine.declare.registry import Workflow
from engine.declare.secrets import decrypted
from engine.replay.cycle import Cycle
from tests.golden import family, nested, secret, tour, undone, wide
from tests.golden.history import HERE, Golden, without_traceback
from tests.golden.replay import ReplayDiffers, replay

STORIES = sorted(path.stem for path in HERE.glob("*.json"))
DAY_US = 24 * 3600 * 1_000_000


@pytest.fixture(autouse=True)
def _samples(request: pytest.FixtureRequest, settings: LazySettings) -> None:
    settings.REPRISE = settings.REPRISE | {"SECRET_KEYS": secret.KEYS}
    import_module("studio.demo.workflows")  # stays known: it is imported once
    request.getfixturevalue("restored_registry")
    tour.declare()
    wide.declare()
    undone.declare()
    family.declare()
    nested.declare()
    secret.declare()


def replayed(golden: Golden, declared: Workflow[Any, Any]) -> Cycle:
    """Replay it a day later."""
    now_us = golden.started_us + DAY_US
    return replay(declared, golden.claimed(), golden.history(), now_us=now_us)


@pytest.mark.parametrize("story", STORIES)
def test_a_golden_history_is_replayed_as_it_was(story: str) -> None:
    """Guarantees 1 to 4"""
    golden = Golden.load(story)
    cycle = replayed(golden, workflows[golden.workflow])
    ending, leave = cycle.exit.ending, cycle.writes.leave
    assert ending is not None
    assert (ending.status, decrypted(loaded(ending.output))) == (golden.status, decrypted(golden.output))
    assert without_traceback(loaded(ending.error)) == golden.error
    assert leave is None or list(leave.unreached) == golden.unreached
    assert (cycle.log_position, cycle.writes.logs) == (golden.log_lines, [])
    undone = {step["name"] for step in golden.steps if "rollback" in step}
    assert undone <= {identity.name for identity in cycle.undoable}, "a rollback that is not found any more"


def loaded(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def test_no_story_is_missing() -> None:
    """Each is a file that `python -m tests.golden` made."""
    assert set(STORIES) == set(import_module("tests.golden.recording").STORIES)


class TestChangedCode:
    """What a replay finds, or these files would be kept for nothing."""

    golden = Golden.load("order-shipped")

    def declare(self, handler: Any) -> Workflow[Any, Any]:
        return workflow("changed")(handler)

    def test_a_step_more(self) -> None:
        async def handler(step: WorkflowStep) -> None:
            await step.do("reserve", lambda: 1)
            await step.do("inform", lambda: 2)

        with pytest.raises(ReplayDiffers, match=r"starts \['inform'\]"):
            replayed(self.golden, self.declare(handler))

    def test_another_end(self) -> None:
        async def handler(step: WorkflowStep) -> object:
            return await step.do("reserve", lambda: 1)

        cycle = replayed(self.golden, self.declare(handler))
        assert cycle.exit.ending is not None
        assert loaded(cycle.exit.ending.output) != self.golden.output
        assert cycle.writes.leave is not None
        assert cycle.writes.leave.unreached != ()

    def test_a_wait_for_something_else(self) -> None:
        async def handler(step: WorkflowStep) -> None:
            await step.wait_for_event("never-sent")

        with pytest.raises(ReplayDiffers):
            replayed(self.golden, self.declare(handler))
