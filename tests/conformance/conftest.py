"""Every case declares the workflows that it is about, and runs them in a real shift on a real database."""

import os

import pytest

from engine.replay import leaving
from engine.replay.cycle import Cycle
from engine.states import InstanceStatus


@pytest.fixture(autouse=True)
def _story(engine_db: None, own_registry: None) -> None:
    """Commits are seen by the shift; what a case declares is gone after it."""


@pytest.fixture(autouse=True)
def _profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """With REPRISE_TEST_PROFILE=forgetful, a worker forgets all after every outcome: each is met by a replay only."""
    if os.environ.get("REPRISE_TEST_PROFILE") == "forgetful":
        monkeypatch.setattr(Cycle, "_deliver_arrived", _leave_instead)


_deliver_arrived = Cycle._deliver_arrived


def _leave_instead(cycle: Cycle) -> bool:
    if not cycle.arrived or cycle.bodies or cycle.delaying or cycle.reading_events:
        return _deliver_arrived(cycle)
    leaving.freeze(cycle, InstanceStatus.QUEUED)
    return True
