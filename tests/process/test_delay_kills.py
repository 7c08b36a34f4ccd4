"""SIGKILL of a worker while a delay function is asked: it is asked again, and its answer counts."""

from __future__ import annotations

import pytest

from tests.process.arena import Arena, attempts, kill, wait_for
from tests.process.program.workflows import ask, program

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

ASKED = "asked about ConnectionError"


def test_killed_while_it_is_asked_it_is_asked_again_and_no_attempt_is_lost(arena: Arena) -> None:
    first = arena.worker("first")
    instance = program.start([ask("call", 4.5)])
    arena.ledger.wait_for(what=ASKED, step="call")

    kill(first)
    arena.worker("second")

    wait_for([instance])
    asked = arena.ledger.lines(what=ASKED)
    assert [(line.attempt, line.pid == first) for line in asked] == [(1, True), (1, False)]
    assert attempts(instance, "call") == [(1, "errored"), (2, "complete")]
    assert instance.refresh().output == [2]
